"""Page text → listings: what the site renders as a listing, with its exact place on the page and its options."""

from rankbook.listings.collecting import about, collect, collect_text
from rankbook.listings.options import OPTIONS, Option, environment
from rankbook.listings.site import Site, site_of

__all__ = ["OPTIONS", "Option", "Site", "about", "collect", "collect_text", "environment", "site_of"]
