"""The generator of the site, whose prose, data and pictures are in ``docs``.

MkDocs calls :mod:`website.hooks`, which add the pages that are made from the code and the published results
(:mod:`website.pages`, :mod:`website.papers`). Commands of the Makefile write files of the repository from the same data
(:mod:`website.commands`). An import leads from these down to :mod:`website.maths` and :mod:`website.common`.
"""
