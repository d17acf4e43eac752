"""The one requirement that depends on the environment: which distribution of XGBoost. The rest is in setup.cfg."""

import platform
import sys
import sysconfig
from configparser import ConfigParser
from importlib.metadata import distributions

from setuptools import setup


def xgboost() -> str:
    """XGBoost's CPU distribution (6 MB), unless the environment has `xgboost` (300 MB, for CUDA code that is not used).

    Both hold the module `xgboost`, so that only one of them can be installed. pip builds with the environment's
    interpreter: its folders of packages are those to look at, also where the build itself is isolated from them.
    """
    folders = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    present = any((found.name or "").lower() == "xgboost" for found in distributions(path=folders))
    built = sys.platform in ("linux", "win32") and platform.machine().lower() in ("x86_64", "amd64", "aarch64")
    return "xgboost>=3.0" if present or not built else "xgboost-cpu>=3.0"


settings = ConfigParser()
settings.read("setup.cfg")
# A list given here replaces the one of setup.cfg.
setup(install_requires=[*settings["options"]["install_requires"].strip().splitlines(), xgboost()])
