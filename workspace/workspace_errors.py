"""What can go wrong with containers and images: always an infrastructure error, never the claw's failure."""

from common.errors import LastingError, NotReadyError


class WorkspaceError(NotReadyError):
    """Docker, an image or a container failed; the message says what failed and what to do next."""

    quotes_engine = True


class ImageMissingError(WorkspaceError, LastingError):
    """An instance has no image: none of its names is known to the engine, and none could be pulled."""


class PreparationError(WorkspaceError, LastingError):
    """The history of an image could not be stripped, or more than the start commit's own past is left."""


class ExportError(WorkspaceError):
    """The patch does not reproduce the final tree, so it is not used."""
