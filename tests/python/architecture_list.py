"""The architectures that architectures.py exports: small ones where there are small ones, else with few and narrow layers."""
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import timm
import torch
import torchvision
import transformers
from timm.models import metaformer, mlp_mixer, mvitv2

BATCH, LENGTH, WORDS = 2, 16, 96

# What most configurations of transformers call these; a class takes those that it knows.
SMALL = dict(vocab_size=WORDS, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=64,
             use_cache=False, pad_token_id=0, bos_token_id=1, eos_token_id=2)
ENCODER_DECODER = dict(vocab_size=WORDS, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
                       encoder_ffn_dim=64, decoder_ffn_dim=64, max_position_embeddings=64, use_cache=False, pad_token_id=0, bos_token_id=1, eos_token_id=2,
                       decoder_start_token_id=2)
T5 = dict(vocab_size=WORDS, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_decoder_layers=2, num_heads=4, use_cache=False, decoder_start_token_id=0)
VISION = dict(hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, image_size=32, patch_size=8)
SPEECH = dict(vocab_size=WORDS, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, conv_dim=(16, 16, 16), conv_stride=(5, 2, 2),
              conv_kernel=(10, 3, 3), num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=2, num_feat_extract_layers=3, apply_spec_augment=False)


# Four experts, two for a word, by the names that mixture-of-experts models have for these.
EXPERTS = dict(num_experts=4, num_local_experts=4, n_routed_experts=4, moe_num_experts=4, num_experts_per_tok=2, num_experts_per_token=2, moe_k=2, moe_topk=2, top_k_experts=2,
               moe_intermediate_size=32, shared_expert_intermediate_size=32, n_shared_experts=1, num_shared_experts=1, moe_num_shared_experts=1, n_group=1, topk_group=1,
               first_k_dense_replace=0, num_key_value_heads=2)


@dataclass
class Architecture:
    name: str
    family: str
    make: Callable  # () -> (module, inputs): a list of tensors, or a dict of them by the names of forward's arguments


def without(settings, *names):
    return {name: value for name, value in settings.items() if name not in names}


def image(size=64, batch=BATCH, channels=3):
    return torch.randn(batch, channels, size, size)


def words(batch=BATCH, length=LENGTH, count=WORDS):
    return torch.randint(3, count, (batch, length))


def from_timm(name, size=64, **arguments):
    return timm.create_model(name, pretrained=False, num_classes=10, **arguments), [image(size)]


def of_timm(name, size, *positional, **arguments):
    """A class of timm where the named models of it fix what would make them small."""
    module, cls = name.split(".")
    return getattr(getattr(timm.models, module), cls)(*positional, num_classes=10, **arguments), [image(size)]


def from_torchvision(make, *inputs, **arguments):
    return make(**arguments), [one() for one in inputs]


def from_transformers(name, inputs, base, changes):
    """`inputs`: functions that make them, by argument."""
    cls = getattr(transformers, name)
    config = cls.config_class(**(base | changes))
    return cls(config), {argument: make() for argument, make in inputs.items()}


def listed(family, inputs, base, *entries):
    for name, changes in entries:
        yield Architecture(name, family, partial(from_transformers, name, inputs, base, changes))


def timm_models():
    plain = {
        "Convolutional networks": [
            "test_resnet", "test_byobnet", "test_convnext", "test_convnext2", "test_efficientnet", "test_efficientnet_gn", "test_efficientnet_evos", "test_nfnet",
            "resnet10t", "convnextv2_atto", "mobilenetv1_100", "mobilenetv3_small_050", "mobilenetv4_conv_small_050", "efficientnet_lite0", "ghostnet_050",
            "ghostnetv3_050", "lcnet_035", "tinynet_e", "regnetx_002", "regnety_002", "repvgg_a0", "mobileone_s0", "repghostnet_050", "mixnet_s", "mnasnet_small",
            "semnasnet_075", "dla46x_c", "ese_vovnet19b_dw", "cs3darknet_focus_s", "inception_next_atto", "hgnetv2_b0", "starnet_s050", "fasternet_t0", "rexnet_100",
            "densenet121", "gernet_s", "selecsls42", "resnest14d", "skresnet18", "hardcorenas_a"],
        "Convolution with attention": [
            "efficientvit_b0", "edgenext_xx_small", "mobilevit_xxs", "mobilevitv2_050", "fastvit_t8", "repvit_m0_9",
            "swiftformer_xs", "ecaresnet26t", "gcresnet33ts"],
        "State space and gated convolution": ["test_mambaout", "mambaout_femto"],
    }
    for name, size in (("test_coatnet", 160), ("test_maxvit", 160), ("efficientformerv2_s0", 224)):
        yield Architecture(name, "Convolution with attention", partial(from_timm, name, size))
    for family, names in plain.items():
        for name in names:
            yield Architecture(name, family, partial(from_timm, name))
    yield Architecture("lambda_resnet26t", "Convolution with attention", partial(from_timm, "lambda_resnet26t", 256))
    yield Architecture("botnet26t_256", "Convolution with attention", partial(from_timm, "botnet26t_256", 256))
    yield Architecture("shvit_s1", "Convolution with attention", partial(from_timm, "shvit_s1", 128))
    yield Architecture("efficientvit_m0", "Convolution with attention", partial(from_timm, "efficientvit_m0", 224))
    yield Architecture("levit_128s", "Convolution with attention", partial(from_timm, "levit_128s", 224))
    yield Architecture("sequencer2d_s", "Mixers", partial(from_timm, "sequencer2d_s", 32, img_size=32, layers=[1, 1, 1, 1], embed_dims=[16, 32, 32, 32], hidden_sizes=[8, 8, 8, 8]))

    transformer = "Vision transformers"
    for name in ("test_vit", "test_vit2", "test_vit3", "test_vit4", "test_vit_relpos"):
        yield Architecture(name, transformer, partial(from_timm, name, 160))
    small = dict(depth=2, embed_dim=32, num_heads=4)
    for name in ("vit_tiny_patch16_224", "deit_tiny_distilled_patch16_224", "deit3_small_patch16_224", "beit_base_patch16_224", "beitv2_base_patch16_224",
                 "eva02_tiny_patch14_224", "cait_xxs24_224", "xcit_nano_12_p16_224", "vit_base_patch16_siglip_224", "convit_tiny"):
        size = 56 if "patch14" in name else 64
        yield Architecture(name, transformer, partial(from_timm, name, size, img_size=size, **small))
    windows = dict(embed_dim=16, depths=(1, 1, 2, 1), num_heads=(1, 2, 2, 4))
    yield Architecture("swin_tiny", transformer, partial(from_timm, "swin_tiny_patch4_window7_224", 64, img_size=64, window_size=4, **windows))
    yield Architecture("swinv2_tiny", transformer, partial(from_timm, "swinv2_tiny_window8_256", 64, img_size=64, window_size=4, **windows))
    yield Architecture("swinv2_cr_tiny", transformer, partial(from_timm, "swinv2_cr_tiny_224", 64, img_size=64, window_size=2, **windows))
    yield Architecture("pvt_v2_b0", transformer, partial(from_timm, "pvt_v2_b0"))
    yield Architecture("twins_svt_small", transformer, partial(from_timm, "twins_svt_small", 64, img_size=64, embed_dims=[16, 16, 32, 32], num_heads=[1, 2, 2, 4], depths=[1, 1, 2, 1]))
    yield Architecture("davit_tiny", transformer, partial(from_timm, "davit_tiny", 64, embed_dims=(16, 16, 32, 32), num_heads=(1, 2, 2, 4), depths=(1, 1, 1, 1)))
    yield Architecture("FocalNet", transformer, partial(of_timm, "focalnet.FocalNet", 64, embed_dim=16, depths=(1, 1, 2, 1)))
    yield Architecture("MViTv2", transformer, partial(of_timm, "mvitv2.MultiScaleVit", 64, mvitv2.MultiScaleVitCfg(depths=(1, 1, 1, 1), embed_dim=16), img_size=(64, 64)))
    yield Architecture("coat_lite_tiny", transformer, partial(from_timm, "coat_lite_tiny", 64, img_size=64, serial_depths=(1, 1, 1, 1), embed_dims=(16, 16, 32, 32), num_heads=8))
    yield Architecture("crossvit_tiny_240", transformer, partial(from_timm, "crossvit_tiny_240", 240, depth=[[1, 2, 0], [1, 2, 0]], embed_dim=[24, 24], num_heads=[3, 3]))
    yield Architecture("hiera_tiny_224", transformer, partial(from_timm, "hiera_tiny_224", 224, embed_dim=16, num_heads=1, stages=(1, 1, 2, 1)))
    yield Architecture("NesT", transformer, partial(of_timm, "nest.Nest", 64, img_size=64, embed_dims=(16, 32, 32), num_heads=(2, 2, 4), depths=(1, 1, 1)))
    yield Architecture("pit_ti_224", transformer, partial(from_timm, "pit_ti_224", 64, img_size=64, base_dims=[8, 8, 8], depth=[1, 1, 1], heads=[2, 4, 8]))
    yield Architecture("tiny_vit_5m_224", transformer, partial(from_timm, "tiny_vit_5m_224", 224, embed_dims=(16, 16, 32, 32), num_heads=(1, 2, 2, 4), depths=(1, 1, 1, 1)))
    yield Architecture("VOLO", transformer, partial(of_timm, "volo.VOLO", 64, img_size=64, layers=(1, 1, 1, 1), embed_dims=(24, 48, 48, 48), num_heads=(2, 4, 4, 4)))
    yield Architecture("GCViT", transformer, partial(of_timm, "gcvit.GlobalContextVit", 64, img_size=64, embed_dim=16, depths=(1, 1, 1, 1), num_heads=(1, 2, 2, 4), window_ratio=(8, 8, 16, 32)))
    yield Architecture("tnt_s_patch16_224", transformer, partial(from_timm, "tnt_s_patch16_224", 64, img_size=64, embed_dim=32, inner_dim=8, num_heads_inner=2, num_heads_outer=4, depth=2))

    yield Architecture("MlpMixer", "Mixers", partial(of_timm, "mlp_mixer.MlpMixer", 64, img_size=64, num_blocks=2, embed_dim=32))
    yield Architecture("gMLP", "Mixers", partial(of_timm, "mlp_mixer.MlpMixer", 64, img_size=64, num_blocks=2, embed_dim=32, mlp_ratio=4, block_layer=mlp_mixer.SpatialGatingBlock, mlp_layer=timm.layers.GatedMlp))
    yield Architecture("ResMLP", "Mixers", partial(of_timm, "mlp_mixer.MlpMixer", 64, img_size=64, num_blocks=2, embed_dim=32, mlp_ratio=4, block_layer=mlp_mixer.ResBlock, norm_layer=mlp_mixer.Affine))
    yield Architecture("ConvMixer", "Mixers", partial(of_timm, "convmixer.ConvMixer", 64, dim=32, depth=2))
    yield Architecture("PoolFormer", "Mixers", partial(of_timm, "metaformer.MetaFormer", 64, dims=(16, 16, 32, 32), depths=(1, 1, 1, 1)))
    yield Architecture("CAFormer", "Mixers", partial(of_timm, "metaformer.MetaFormer", 64, dims=(32, 32, 32, 32), depths=(1, 1, 1, 1), token_mixers=[metaformer.SepConv] * 2 + [metaformer.Attention] * 2,
                                                         norm_layers=[metaformer.LayerNorm2dNoBias] * 2 + [metaformer.LayerNormNoBias] * 2))


def torchvision_models():
    models = torchvision.models
    video = partial(torch.randn, 1, 3, 8, 32, 32)

    def make(name, family, function, *inputs, **arguments):
        return Architecture(name, family, partial(from_torchvision, function, *inputs, **arguments))

    convolutional = "Convolutional networks"
    yield make("squeezenet1_1", convolutional, models.squeezenet1_1, image, num_classes=10)
    yield make("shufflenet_v2_x0_5", convolutional, models.shufflenet_v2_x0_5, image, num_classes=10)
    yield make("mobilenet_v2", convolutional, models.mobilenet_v2, image, num_classes=10, width_mult=0.5)
    yield make("googlenet", convolutional, models.googlenet, image, num_classes=10, aux_logits=False, init_weights=False)
    yield make("vit", "Vision transformers", models.VisionTransformer, image, image_size=64, patch_size=16, num_layers=2, num_heads=4, hidden_dim=32, mlp_dim=64)
    yield make("maxvit", "Convolution with attention", models.MaxVit, image, input_size=(64, 64), stem_channels=16, partition_size=2, block_channels=[16, 32],
               block_layers=[1, 1], head_dim=8, stochastic_depth_prob=0.0)
    dense = "Segmentation, detection, flow"
    yield make("lraspp_mobilenet_v3_large", dense, models.segmentation.lraspp_mobilenet_v3_large, image, num_classes=5, weights_backbone=None)
    yield make("deeplabv3_mobilenet_v3_large", dense, models.segmentation.deeplabv3_mobilenet_v3_large, image, num_classes=5, weights_backbone=None)
    yield make("mobilenet_fpn", dense, models.detection.backbone_utils.mobilenet_backbone, image, backbone_name="mobilenet_v2", weights=None, fpn=True)
    yield make("resnet18_fpn", dense, models.detection.backbone_utils.resnet_fpn_backbone, image, backbone_name="resnet18", weights=None)
    yield make("raft_small", dense, models.optical_flow.raft_small, partial(image, 128, 1), partial(image, 128, 1))
    yield make("swin3d", "Video", models.video.SwinTransformer3d, video, patch_size=[2, 4, 4], embed_dim=16, depths=[1, 1], num_heads=[2, 4], window_size=[2, 4, 4], num_classes=10)
    block = models.video.mvit.MSBlockConfig
    yield make("mvit_v1", "Video", models.video.MViT, video, spatial_size=(32, 32), temporal_size=8, num_classes=10, residual_pool=False, residual_with_cls_embed=True,
               rel_pos_embed=False, proj_after_attn=False,
               block_setting=[block(1, 16, 32, [], [3, 3, 3], [], [1, 2, 2]), block(2, 32, 32, [3, 3, 3], [3, 3, 3], [1, 2, 2], [1, 2, 2])])


def transformers_models():
    text = {"input_ids": words}
    masked = {"input_ids": words, "attention_mask": lambda: torch.tensor([[1] * LENGTH, [1] * (LENGTH - 4) + [0] * 4])}
    both = {"input_ids": words, "decoder_input_ids": partial(words, length=8)}
    pixels = {"pixel_values": partial(image, 32)}
    sound = {"input_values": partial(torch.randn, BATCH, 1600)}

    grouped = dict(num_key_value_heads=2, head_dim=8)
    yield from listed(
        "Language models, decoder", text, SMALL, ("GPT2LMHeadModel", {}), ("GPTNeoForCausalLM", dict(attention_types=[[["global", "local"], 1]], window_size=8)),
        ("GPTJForCausalLM", dict(rotary_dim=4)), ("GPTNeoXForCausalLM", {}), ("GPTBigCodeForCausalLM", {}), ("CodeGenForCausalLM", dict(rotary_dim=4)),
        ("OPTForCausalLM", dict(ffn_dim=64, word_embed_proj_dim=32)), ("BloomForCausalLM", {}), ("FalconForCausalLM", {}), ("MptForCausalLM", dict(max_seq_len=64)),
        ("LlamaForCausalLM", grouped), ("MistralForCausalLM", grouped | dict(sliding_window=8)), ("Qwen2ForCausalLM", grouped), ("Qwen3ForCausalLM", grouped),
        ("GemmaForCausalLM", grouped), ("Gemma2ForCausalLM", grouped | dict(sliding_window=8)), ("Gemma3ForCausalLM", grouped | dict(sliding_window=8)),
        ("PhiForCausalLM", {}), ("Phi3ForCausalLM", dict(num_key_value_heads=2)), ("StableLmForCausalLM", dict(num_key_value_heads=2)),
        ("CohereForCausalLM", dict(num_key_value_heads=2)), ("Cohere2ForCausalLM", dict(num_key_value_heads=2, sliding_window=8)), ("OlmoForCausalLM", {}),
        ("Olmo2ForCausalLM", {}), ("Starcoder2ForCausalLM", dict(num_key_value_heads=2)), ("PersimmonForCausalLM", {}), ("NemotronForCausalLM", grouped),
        ("GraniteForCausalLM", grouped), ("GlmForCausalLM", grouped), ("Glm4ForCausalLM", grouped), ("SmolLM3ForCausalLM", grouped), ("HeliumForCausalLM", grouped),
        ("Exaone4ForCausalLM", grouped | dict(sliding_window=8)), ("BioGptForCausalLM", {}), ("CTRLLMHeadModel", dict(dff=64)), ("OpenAIGPTLMHeadModel", {}),
        ("XGLMForCausalLM", dict(d_model=32, ffn_dim=64, num_layers=2, attention_heads=4)), ("DiffLlamaForCausalLM", grouped),
        ("XLMWithLMHeadModel", dict(emb_dim=32, n_layers=2, n_heads=4)))
    yield from listed("Language models, decoder", text, {}, ("XLNetLMHeadModel", dict(vocab_size=WORDS, d_model=32, n_layer=2, n_head=4, d_inner=64)))
    yield from listed("Language models, encoder", masked, without(SMALL, "num_hidden_layers", "max_position_embeddings"),
                      ("FunnelForMaskedLM", dict(block_sizes=[1, 1], d_model=32, n_head=4, d_head=8, d_inner=64)))
    yield from listed(
        "Language models, encoder", masked, SMALL, ("BertForMaskedLM", {}), ("RobertaForMaskedLM", dict(max_position_embeddings=80)), ("AlbertForMaskedLM", dict(embedding_size=16)),
        ("ElectraForMaskedLM", dict(embedding_size=16)), ("DistilBertForMaskedLM", dict(hidden_dim=64)),
        ("DebertaForMaskedLM", dict(relative_attention=True, pos_att_type=["c2p", "p2c"])), ("DebertaV2ForMaskedLM", dict(relative_attention=True, pos_att_type=["c2p", "p2c"])),
        ("MPNetForMaskedLM", {}), ("ConvBertForMaskedLM", dict(embedding_size=32)),
        ("SqueezeBertForMaskedLM", dict(embedding_size=32)), ("MobileBertForMaskedLM", dict(embedding_size=32, intra_bottleneck_size=32, num_feedforward_networks=1)),
        ("RoFormerForMaskedLM", dict(embedding_size=32)), ("MegatronBertForMaskedLM", {}), ("RemBertForMaskedLM", dict(input_embedding_size=16, output_embedding_size=16)),
        ("ModernBertForMaskedLM", dict(local_attention=8, global_attn_every_n_layers=2)), ("LayoutLMForMaskedLM", {}), ("EsmForMaskedLM", dict(mask_token_id=3)),
        ("SplinterModel", {}), ("YosoForMaskedLM", {}), ("LongformerForMaskedLM", dict(attention_window=[8, 8])), ("XmodForMaskedLM", dict(languages=["en_XX"], default_language="en_XX")),
        ("IBertForMaskedLM", {}))
    yield from listed("Language models, encoder", text, SMALL, ("FNetForMaskedLM", {}), ("BigBirdForMaskedLM", dict(attention_type="original_full")))
    yield from listed(
        "Language models, encoder-decoder", both, ENCODER_DECODER, ("BartForConditionalGeneration", {}), ("MBartForConditionalGeneration", {}),
        ("PegasusForConditionalGeneration", {}), ("PegasusXForConditionalGeneration", dict(block_size=8, num_global_tokens=4)), ("MarianMTModel", {}),
        ("M2M100ForConditionalGeneration", {}), ("BlenderbotForConditionalGeneration", {}), ("PLBartForConditionalGeneration", {}),
        ("LEDForConditionalGeneration", dict(attention_window=[8, 8], max_encoder_position_embeddings=64, max_decoder_position_embeddings=64)))
    yield from listed("Language models, encoder-decoder", both, {},
                      ("ProphetNetForConditionalGeneration", dict(vocab_size=WORDS, hidden_size=32, num_encoder_layers=2, num_decoder_layers=2, num_encoder_attention_heads=4,
                                                                  num_decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, max_position_embeddings=64, use_cache=False)))
    yield from listed("Language models, encoder-decoder", both, T5, ("T5ForConditionalGeneration", {}), ("MT5ForConditionalGeneration", {}), ("UMT5ForConditionalGeneration", {}))
    yield from listed("Language models, encoder-decoder", masked | both, T5, ("LongT5ForConditionalGeneration", dict(local_radius=3)))
    yield from listed(
        "State space and gated convolution", text, SMALL, ("MambaForCausalLM", dict(state_size=4)), ("Mamba2ForCausalLM", dict(state_size=4, num_heads=8, head_dim=8, expand=2, n_groups=2, chunk_size=8)),
        ("FalconMambaForCausalLM", dict(state_size=4)), ("RwkvForCausalLM", dict(attention_hidden_size=32, context_length=32)),
        ("RecurrentGemmaForCausalLM", dict(lru_width=32, num_hidden_layers=3, attention_window_size=8)), ("Lfm2ForCausalLM", dict(num_key_value_heads=2, layer_types=["conv", "full_attention"])),
        ("BambaForCausalLM", dict(num_key_value_heads=2, attn_layer_indices=[1], mamba_n_heads=8, mamba_d_head=8, mamba_d_state=4, mamba_chunk_size=8)),
        ("FalconH1ForCausalLM", dict(num_key_value_heads=2, head_dim=8, mamba_d_ssm=64, mamba_n_heads=8, mamba_d_head=8, mamba_d_state=4, mamba_chunk_size=8)),
        ("xLSTMForCausalLM", dict(num_heads=4, embedding_dim=32, num_blocks=2, chunk_size=8)))
    yield from listed("Audio", sound, SPEECH, ("Wav2Vec2ForCTC", {}), ("HubertForCTC", {}), ("WavLMForCTC", dict(num_buckets=16, max_bucket_distance=32)),
                      ("SEWForCTC", dict(squeeze_factor=2)), ("UniSpeechForCTC", {}), ("Data2VecAudioForCTC", dict(conv_pos_kernel_size=3)),
                      ("Wav2Vec2ConformerForCTC", dict(position_embeddings_type="relative", conv_depthwise_kernel_size=7)))
    yield from listed("Audio", {"input_features": partial(torch.randn, BATCH, 8, 64), "decoder_input_ids": partial(words, length=8)}, ENCODER_DECODER,
                      ("WhisperForConditionalGeneration", dict(num_mel_bins=8, max_source_positions=32, max_target_positions=32)))
    yield from listed("Audio", {"input_features": partial(torch.randn, BATCH, 32, 8), "decoder_input_ids": partial(words, length=8)}, ENCODER_DECODER,
                      ("Speech2TextForConditionalGeneration", dict(input_feat_per_channel=8, input_channels=1, conv_channels=16, max_source_positions=64, max_target_positions=32)))
    yield from listed("Audio", {"input_values": partial(torch.randn, BATCH, 64, 16)}, VISION, ("ASTForAudioClassification", dict(num_mel_bins=16, max_length=64, frequency_stride=8, time_stride=8)))
    yield from listed("Audio", {"input_values": partial(torch.randn, BATCH, 1, 640)}, {},
                      ("DacModel", dict(encoder_hidden_size=8, downsampling_ratios=[2, 4], decoder_hidden_size=32, upsampling_ratios=[4, 2], n_codebooks=2, codebook_size=16, codebook_dim=4, hidden_size=32)))
    yield from listed("Audio", {"spectrogram": partial(torch.randn, BATCH, 16, 8)}, {}, ("SpeechT5HifiGan", dict(model_in_dim=8, upsample_initial_channel=32, upsample_rates=[4, 4], upsample_kernel_sizes=[8, 8])))

    yield from listed(
        "Vision transformers", pixels, VISION, ("ViTForImageClassification", {}), ("BeitForImageClassification", {}), ("Dinov2ForImageClassification", {}),
        ("DINOv3ViTModel", {}), ("YolosModel", dict(image_size=[32, 32], num_detection_tokens=4)), ("IJepaModel", {}), ("ViTMSNModel", {}), ("Data2VecVisionModel", {}),
        ("PvtV2Model", dict(hidden_sizes=[16, 16, 32, 32], depths=[1, 1, 1, 1], num_attention_heads=[1, 2, 2, 4])))
    yield from listed("Vision transformers", {"pixel_values": partial(image, 64)}, {}, ("CvtModel", dict(embed_dim=[16, 32, 32], num_heads=[1, 2, 4], depth=[1, 2, 3])))
    yield from listed(
        "Segmentation, detection, flow", {"pixel_values": partial(image, 64)}, {},
        ("SegformerForSemanticSegmentation", dict(hidden_sizes=[16, 16, 32, 32], depths=[1, 1, 1, 1], num_attention_heads=[1, 2, 2, 4], decoder_hidden_size=32)),
        ("MobileViTForSemanticSegmentation", dict(image_size=64, hidden_sizes=[16, 16, 16], neck_hidden_sizes=[8, 8, 16, 16, 16, 16, 32], num_attention_heads=4, aspp_out_channels=16)),
        ("MobileNetV2ForSemanticSegmentation", dict(depth_multiplier=0.35)),
        ("GLPNForDepthEstimation", dict(hidden_sizes=[16, 16, 32, 32], depths=[1, 1, 1, 1], num_attention_heads=[1, 2, 2, 4], decoder_hidden_size=16)),
        ("DPTForDepthEstimation", VISION | dict(image_size=64, patch_size=16, num_hidden_layers=4, backbone_out_indices=[0, 1, 2, 3], neck_hidden_sizes=[8, 16, 16, 32], fusion_hidden_size=16, is_hybrid=False)),
        ("Swin2SRForImageSuperResolution", dict(image_size=64, embed_dim=16, depths=[1, 1], num_heads=[2, 2], window_size=4)),
        ("RTDetrResNetBackbone", dict(embedding_size=16, hidden_sizes=[16, 16, 32, 32], depths=[1, 1, 1, 1], layer_type="basic")),
        ("SuperPointForKeypointDetection", {}))
    yield from listed("Video", {"pixel_values": partial(torch.randn, 1, 4, 3, 32, 32)}, VISION, ("TimesformerModel", dict(num_frames=4)), ("VivitModel", dict(num_frames=4, tubelet_size=[2, 8, 8])),
                      ("VideoMAEModel", dict(num_frames=4, tubelet_size=2)))

    two = {"text_config": SMALL | dict(projection_dim=16), "vision_config": VISION | dict(projection_dim=16), "projection_dim": 16}
    picture_and_words = {"input_ids": words, "pixel_values": partial(image, 32)}
    yield from listed("Text and images", picture_and_words, {}, ("CLIPModel", two), ("SiglipModel", two), ("ChineseCLIPModel", two), ("AltCLIPModel", two), ("BlipModel", two),
                      ("ViltModel", SMALL | VISION), ("GitForCausalLM", SMALL | dict(vision_config=VISION)),
                      ("FlavaModel", dict(text_config=SMALL, image_config=VISION, multimodal_config=dict(hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4), hidden_size=32, projection_dim=16)))
    yield from listed("Text and images", {"input_ids": words, "visual_embeds": partial(torch.randn, BATCH, 4, 16)}, SMALL, ("VisualBertModel", dict(visual_embedding_dim=16)))
    yield from listed("Text and images", {"input_ids": words, "visual_feats": partial(torch.randn, BATCH, 4, 16), "visual_pos": partial(torch.rand, BATCH, 4, 4)}, SMALL,
                      ("LxmertModel", dict(l_layers=1, x_layers=1, r_layers=1, visual_feat_dim=16)))

    series = dict(context_length=16, prediction_length=8, d_model=16, num_hidden_layers=2, num_attention_heads=4, ffn_dim=32, patch_length=4, patch_stride=4, num_input_channels=2)
    yield from listed("Series and decisions", {"past_values": partial(torch.randn, BATCH, 16, 2)}, series, ("PatchTSTForPrediction", {}), ("PatchTSMixerForPrediction", {}))
    yield from listed(
        "Series and decisions",
        {"states": partial(torch.randn, BATCH, 4, 5), "actions": partial(torch.randn, BATCH, 4, 3), "rewards": partial(torch.randn, BATCH, 4, 1),
         "returns_to_go": partial(torch.randn, BATCH, 4, 1), "timesteps": lambda: torch.arange(4).expand(BATCH, 4).contiguous(), "attention_mask": lambda: torch.ones(BATCH, 4)},
        {}, ("DecisionTransformerModel", dict(state_dim=5, act_dim=3, hidden_size=32, max_ep_len=16, n_layer=2, n_head=4)))
    yield from listed("Series and decisions", {"inputs": partial(torch.randn, BATCH, 16, 32)}, {},
                      ("PerceiverModel", dict(num_latents=8, d_latents=32, d_model=32, num_self_attends_per_block=1, num_self_attention_heads=4, num_cross_attention_heads=4)))


def mixtures_of_experts():
    latent = dict(q_lora_rank=16, kv_lora_rank=16, qk_rope_head_dim=8, qk_nope_head_dim=8, v_head_dim=8, num_key_value_heads=4)
    yield from listed(
        "Mixtures of experts", {"input_ids": words}, SMALL | EXPERTS, ("MixtralForCausalLM", {}), ("Qwen2MoeForCausalLM", {}), ("Qwen3MoeForCausalLM", dict(head_dim=8)),
        ("OlmoeForCausalLM", {}), ("FlexOlmoForCausalLM", {}), ("GraniteMoeForCausalLM", {}), ("GraniteMoeSharedForCausalLM", dict(shared_intermediate_size=32)),
        ("PhimoeForCausalLM", {}), ("MiniMaxForCausalLM", dict(head_dim=8, block_size=8)), ("GptOssForCausalLM", dict(head_dim=8, sliding_window=8)),
        ("DeepseekV2ForCausalLM", latent), ("DeepseekV3ForCausalLM", latent), ("Glm4MoeForCausalLM", dict(head_dim=8)), ("Dots1ForCausalLM", dict(head_dim=8)),
        ("Ernie4_5_MoeForCausalLM", {}), ("HunYuanMoEV1ForCausalLM", dict(head_dim=8)), ("JambaForCausalLM", dict(attn_layer_period=2, attn_layer_offset=1, expert_layer_period=2, expert_layer_offset=1, mamba_d_state=4, mamba_dt_rank=4, use_mamba_kernels=False)),
        ("Lfm2MoeForCausalLM", dict(layer_types=["conv", "full_attention"], num_dense_layers=1)), ("Qwen3NextForCausalLM", dict(head_dim=8, linear_num_value_heads=4, linear_num_key_heads=2, linear_key_head_dim=8, linear_value_head_dim=8, layer_types=["linear_attention", "full_attention"])),
        ("DogeForCausalLM", dict(is_moe=True)), ("DbrxForCausalLM", dict(d_model=32, n_heads=4, n_layers=2, max_seq_len=64, attn_config=dict(kv_n_heads=2, clip_qkv=8.0), ffn_config=dict(ffn_hidden_size=64, moe_num_experts=4, moe_top_k=2))))


def newer_transformers():
    """Families that transformers 5 added, and some older ones that the lists above leave out."""
    words_only = {"input_ids": words}
    grouped = dict(num_key_value_heads=2, head_dim=8)
    windowed = grouped | dict(sliding_window=8)
    latent = dict(q_lora_rank=16, kv_lora_rank=16, qk_rope_head_dim=8, qk_nope_head_dim=8, v_head_dim=8, num_key_value_heads=4)
    yield from listed(
        "Mixtures of experts", words_only, SMALL | EXPERTS, ("AfmoeForCausalLM", windowed | dict(num_dense_layers=1)), ("Cohere2MoeForCausalLM", windowed), ("ExaoneMoeForCausalLM", windowed),
        ("Glm4MoeLiteForCausalLM", latent), ("MiniMaxM2ForCausalLM", grouped | dict(rotary_dim=8)), ("SolarOpenForCausalLM", grouped), ("MellumForCausalLM", grouped),
        ("HYV3ForCausalLM", grouped), ("JetMoeForCausalLM", dict(kv_channels=8)), ("MiMoV2FlashForCausalLM", windowed), ("GraniteMoeSWAForCausalLM", dict(sliding_window=8)))
    yield from listed(
        "Language models, decoder", words_only, SMALL, ("ApertusForCausalLM", grouped), ("BitNetForCausalLM", grouped), ("NanoChatForCausalLM", grouped), ("Olmo3ForCausalLM", windowed),
        ("VaultGemmaForCausalLM", windowed), ("YoutuForCausalLM", latent))
    yield from listed("Language models, encoder", words_only, SMALL, ("EuroBertForMaskedLM", {}))
    both = {"input_ids": words, "decoder_input_ids": partial(words, length=8)}
    yield from listed("Language models, encoder-decoder", both, ENCODER_DECODER, ("FSMTForConditionalGeneration", dict(src_vocab_size=WORDS, tgt_vocab_size=WORDS, langs=["en", "de"])))
    deep = dict(hidden_sizes=[16, 16, 32, 32], depths=[1, 1, 1, 1], embedding_size=16, num_labels=10)
    yield from listed("Convolutional networks", {"pixel_values": partial(image, 64)}, deep, ("ConvNextV2ForImageClassification", {}), ("ResNetForImageClassification", {}),
                      ("RegNetForImageClassification", dict(groups_width=8)), ("BitForImageClassification", dict(num_groups=4)))
    windows = dict(image_size=64, embed_dim=16, depths=[1, 1, 1], num_heads=[1, 2, 2], window_size=4, num_labels=10)
    yield from listed("Vision transformers", {"pixel_values": partial(image, 64)}, windows, ("SwinForImageClassification", {}))
    yield from listed("Vision transformers", {"pixel_values": partial(image, 32)}, VISION, ("Dinov2WithRegistersForImageClassification", {}))


def architectures():
    found = [*timm_models(), *torchvision_models(), *transformers_models(), *mixtures_of_experts(), *newer_transformers()]
    names = [one.name for one in found]
    assert len(set(names)) == len(names), "two architectures have one name"
    return found
