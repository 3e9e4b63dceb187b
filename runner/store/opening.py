"""Opens the store that the settings name: a folder, or an object store with copies in a folder on this machine."""

from __future__ import annotations

from pathlib import Path

from runner.config.addresses import is_address
from runner.config.objects import ConfigError
from runner.store.base import RunFiles, WorkStore
from runner.store.disk import DiskStore
from runner.store.settings import StoreSettings

RUN_FILES = Path("mlruns")
"""The folder for the files of running experiments if the store is not a folder."""


def open_store(settings: StoreSettings) -> WorkStore:
    """Return the store of the settings; raises `ConfigError` if an object store cannot be listed.

    A folder is created with its first entry.
    """
    if not is_address(settings.path):
        return DiskStore(Path(settings.path))
    from runner.store.remote import LOCKS, ObjectShelf
    from runner.system.object_stores import Objects

    objects = Objects(settings.path)
    try:
        objects.list_all(LOCKS)
    except OSError as error:
        raise ConfigError(
            f"store.path={objects.place}: cannot be listed ({error.strerror or error}); check the address, the "
            "credentials and the endpoint"
        ) from error
    return DiskStore(ObjectShelf(settings.path, settings.copies, RunFiles(RUN_FILES)))
