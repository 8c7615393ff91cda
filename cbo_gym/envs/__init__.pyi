from .oracle import oracle_of as oracle_of
from .scalar import CausalBanditEnv as CausalBanditEnv
from .vector import CausalBanditVectorEnv as CausalBanditVectorEnv
