"""Explorers: interactive figures that compute and draw in the browser."""

from attention_course.explorers.ablation_switchboard import ablation_switchboard
from attention_course.explorers.alignment_matrix import alignment_matrix
from attention_course.explorers.blank_filler import blank_filler
from attention_course.explorers.block_flow import block_flow
from attention_course.explorers.block_stepper import block_stepper
from attention_course.explorers.bpe_steps import bpe_steps
from attention_course.explorers.broadcasting_viewer import broadcasting_viewer
from attention_course.explorers.cls_rows import cls_rows
from attention_course.explorers.decoder_stepper import decoder_stepper
from attention_course.explorers.distance_products import distance_products
from attention_course.explorers.four_heads import four_heads
from attention_course.explorers.fused_matrix import fused_matrix
from attention_course.explorers.generator_sizes import generator_sizes
from attention_course.explorers.layer_map import layer_map
from attention_course.explorers.mask_painter import mask_painter
from attention_course.explorers.mask_trio import mask_trio
from attention_course.explorers.memory_window import memory_window
from attention_course.explorers.order_masks import order_masks
from attention_course.explorers.query_walk import query_walk
from attention_course.explorers.replaced_game import replaced_game
from attention_course.explorers.ring_lift import ring_lift
from attention_course.explorers.sampling_explorer import sampling_explorer
from attention_course.explorers.scale_explorer import scale_explorer
from attention_course.explorers.span_matrix import span_matrix
from attention_course.explorers.temperature_explorer import temperature_explorer
from attention_course.explorers.three_scores import three_scores
from attention_course.explorers.wave_table import wave_table
from attention_course.explorers.wordpiece_steps import wordpiece_steps

__all__ = [
    "ablation_switchboard",
    "alignment_matrix",
    "blank_filler",
    "block_flow",
    "block_stepper",
    "bpe_steps",
    "broadcasting_viewer",
    "cls_rows",
    "decoder_stepper",
    "distance_products",
    "four_heads",
    "fused_matrix",
    "generator_sizes",
    "layer_map",
    "mask_painter",
    "mask_trio",
    "memory_window",
    "order_masks",
    "query_walk",
    "replaced_game",
    "ring_lift",
    "sampling_explorer",
    "scale_explorer",
    "span_matrix",
    "temperature_explorer",
    "three_scores",
    "wave_table",
    "wordpiece_steps",
]
