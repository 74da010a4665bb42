"""Towns that come with mindstream, each a folder with a `town.toml`."""

from mindstream_town.packs.find import find_pack, open_setting, shipped_packs

__all__ = ["find_pack", "open_setting", "shipped_packs"]
