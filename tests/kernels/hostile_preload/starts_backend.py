"""What a module must not do when it is preloaded."""

import jax

jax.devices()
