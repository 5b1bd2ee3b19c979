"""One factor: its functions, its shape, and where every sample lies on it.

factor
    The record `Factor`, made of a block of functions, and the angles between factors.
shapes
    Which functions distinguish places; interval, circle or another shape; angles on a circle.
charts
    Functions freed from the other factors' effects, as coordinates; surfaces of places.
"""
