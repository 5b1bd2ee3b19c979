"""One factor: its functions, its shape, and where every sample lies on it.

factor
    The record `Factor`, made of a block of functions.
shapes
    Which functions tell places apart; interval, circle or another shape.
charts
    Functions freed from the other factors' effects, as coordinates.
clouds
    Clouds of places on a surface, and what others are pulled onto.
circles
    Angles, and places on a circle.
ownership
    Which functions of the spectrum belong to which factor.
"""
