"""The machine: processes, versions and object stores."""
