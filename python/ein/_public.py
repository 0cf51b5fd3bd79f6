"""What a part of the compiled module has, as names of a package's module."""


def names(part):
    return {name: getattr(part, name) for name in dir(part) if not name.startswith("_")}
