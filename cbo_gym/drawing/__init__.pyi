from .diagram import Box as Box
from .diagram import Line as Line
from .diagram import Picture as Picture
