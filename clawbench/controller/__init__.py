"""The controller, the process that the user started: manifest, gateway, images and log of a whole run."""
