"""Files of particles and images: STAR, .cs and MRC, as RELION and cryoSPARC write them."""
