"""What can go wrong with containers and images: never the claw's fault."""


class WorkspaceError(RuntimeError):
    """Docker, an image or a container failed; the message says what and what to do next."""


class ImageMissingError(WorkspaceError, LookupError):
    """No image for an instance: neither here under any of its names, nor to be pulled."""


class PreparationError(WorkspaceError):
    """An image's history could not be stripped, or what is left is not exactly the start commit's past."""


class ExportError(WorkspaceError):
    """The patch does not reproduce the final tree; it is not handed on."""
