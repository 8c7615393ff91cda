# Written by make zoo: type checkers cannot follow lazy imports.
from cbo_gym.agents.baselines.ask_tell import AskTell as AskTell
from cbo_gym.agents.baselines.learned_graph import LearnedGraph as LearnedGraph
from cbo_gym.agents.baselines.optuna import Optuna as Optuna
from cbo_gym.agents.baselines.random import Random as Random
from cbo_gym.agents.baselines.stable_baselines3 import StableBaselines3 as StableBaselines3
from cbo_gym.agents.black_box.constrained_ei import ConstrainedEI as ConstrainedEI
from cbo_gym.agents.black_box.eicf import EICF as EICF
from cbo_gym.agents.black_box.gp_mw import GPMW as GPMW
from cbo_gym.agents.black_box.gp_ucb import GPUCB as GPUCB
from cbo_gym.agents.cells.cell_gp_ucb import CellGPUCB as CellGPUCB
from cbo_gym.agents.cells.gpoo import GPOO as GPOO
from cbo_gym.agents.cells.gptree import GPTree as GPTree
from cbo_gym.agents.cells.stooo import AVEStoOO as AVEStoOO
from cbo_gym.agents.cells.stooo import StoOO as StoOO
from cbo_gym.agents.choice.auto import Auto as Auto
from cbo_gym.agents.discrete.parallel_bandit import ParallelBandit as ParallelBandit
from cbo_gym.agents.discrete.successive_rejects import SuccessiveRejects as SuccessiveRejects
from cbo_gym.agents.discrete.thompson import POMISTS as POMISTS
from cbo_gym.agents.discrete.thompson import TS as TS
from cbo_gym.agents.discrete.ucb import POMISUCB as POMISUCB
from cbo_gym.agents.discrete.ucb import UCB as UCB
from cbo_gym.agents.dynamic.abo import ABO as ABO
from cbo_gym.agents.dynamic.dcbo import DCBO as DCBO
from cbo_gym.agents.dynamic.restarted import CBORestarted as CBORestarted
from cbo_gym.agents.dynamic.restarted import GPUCBRestarted as GPUCBRestarted
from cbo_gym.agents.intervention_sets.cabo import CaBO as CaBO
from cbo_gym.agents.intervention_sets.cbo import CBO as CBO
from cbo_gym.agents.intervention_sets.cbo_u import CBOU as CBOU
from cbo_gym.agents.intervention_sets.ccbo import CCBO as CCBO
from cbo_gym.agents.intervention_sets.ceo import CEO as CEO
from cbo_gym.agents.intervention_sets.hcbo import HCBO as HCBO
from cbo_gym.agents.networks.cbo_mw import CBOMW as CBOMW
from cbo_gym.agents.networks.eifn import EIFN as EIFN
from cbo_gym.agents.networks.excbo import EXCBO as EXCBO
from cbo_gym.agents.networks.mcbo import MCBO as MCBO
from cbo_gym.agents.networks.network_model import GPNetworkModel as GPNetworkModel
from cbo_gym.agents.scopes.cobo import CoBO as CoBO
from cbo_gym.agents.scopes.cocabo import CoCaBO as CoCaBO
from cbo_gym.agents.several_objectives.causal_pareto_select import CausalParetoSelect as CausalParetoSelect
from cbo_gym.agents.several_objectives.qnehvi import QNEHVI as QNEHVI
from cbo_gym.agents.several_objectives.qnehvi import QNEHVISets as QNEHVISets
from cbo_gym.agents.several_objectives.qnehvi_network import QNEHVINetwork as QNEHVINetwork
from cbo_gym.agents.subsets.ga_lcb import GALCB as GALCB
from cbo_gym.agents.subsets.linsem_ts import LinSEMTS as LinSEMTS
from cbo_gym.agents.subsets.linsem_ucb import LinSEMUCB as LinSEMUCB
from cbo_gym.agents.subsets.subset_ucb import SubsetUCB as SubsetUCB
from cbo_gym.agents.super_arms.igp_ucb import IGPUCB as IGPUCB
from cbo_gym.agents.super_arms.mets import METS as METS
from cbo_gym.agents.super_arms.sem_ucb import SEMUCB as SEMUCB
from cbo_gym.agents.super_arms.sgb import SGB as SGB
from cbo_gym.agents.super_arms.ssem_ucb import SSEMUCB as SSEMUCB
from cbo_gym.agents.super_arms.ssem_ucb import SSEMUCBJO as SSEMUCBJO
from cbo_gym.agents.super_arms.ssem_ucb import SSEMUCBNorm as SSEMUCBNorm

__all__ = [
    "ABO",
    "CBO",
    "CBOMW",
    "CBOU",
    "CCBO",
    "CEO",
    "DCBO",
    "EICF",
    "EIFN",
    "EXCBO",
    "GALCB",
    "GPMW",
    "GPOO",
    "GPUCB",
    "HCBO",
    "IGPUCB",
    "MCBO",
    "METS",
    "POMISTS",
    "POMISUCB",
    "QNEHVI",
    "SEMUCB",
    "SGB",
    "SSEMUCB",
    "SSEMUCBJO",
    "TS",
    "UCB",
    "AVEStoOO",
    "AskTell",
    "Auto",
    "CBORestarted",
    "CaBO",
    "CausalParetoSelect",
    "CellGPUCB",
    "CoBO",
    "CoCaBO",
    "ConstrainedEI",
    "GPNetworkModel",
    "GPTree",
    "GPUCBRestarted",
    "LearnedGraph",
    "LinSEMTS",
    "LinSEMUCB",
    "Optuna",
    "ParallelBandit",
    "QNEHVINetwork",
    "QNEHVISets",
    "Random",
    "SSEMUCBNorm",
    "StableBaselines3",
    "StoOO",
    "SubsetUCB",
    "SuccessiveRejects",
]
