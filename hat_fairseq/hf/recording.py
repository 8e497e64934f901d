"""The states of layers and the weights of attentions, for `output_hidden_states` and `output_attentions`.

Legend: B documents (in the decoder R hypotheses), T tokens, T' slots, S sentences, U target tokens, H heads, C
channels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from ..modules.attention import FullAttention, HeadProjections
from ..modules.batch_layout import BatchLayout
from ..modules.layers import EncoderLayer

Hook = Callable[[nn.Module, tuple[Any, ...], Any], None]


class Recording:
    """Records one forward pass inside a `with` block; each attribute is a tuple with one tensor a layer.

    What is recorded is kept, so no layer is recomputed in the backward pass.

    Attributes:
        hidden: (B, T, C) states of the tokens before the first layer and after each.
        attentions: (B, H, T, T) weights of self-attention, rows of queries.
        sentences: (B, H, T, S) weights on the sentences, or (B, H, S, S) among them.
        decoder_hidden, decoder_attentions: (R, U, C) states, and (R, H, U, U) weights of self-attention.
        cross: (R, H, U, T) weights on the tokens of the source; cross_sentences: (R, H, U, S) on its sentences.
    """

    def __init__(self, encoder: Any, decoder: Any = None, states: bool = False, weights: bool = False) -> None:
        self.hidden: tuple[Tensor, ...] = ()
        self.attentions: tuple[Tensor, ...] = ()
        self.sentences: tuple[Tensor, ...] = ()
        self.decoder_hidden: tuple[Tensor, ...] = ()
        self.decoder_attentions: tuple[Tensor, ...] = ()
        self.cross: tuple[Tensor, ...] = ()
        self.cross_sentences: tuple[Tensor, ...] = ()
        self._hooks: list[tuple[nn.Module, Hook]] = []
        self._before: list[tuple[nn.Module, Any]] = []
        self._recomputed = [each for each in (encoder, decoder) if (states or weights) and each is not None]
        self._recomputed = [each for each in self._recomputed if each.checkpoint]
        if weights:
            check_attentions(encoder)
            self._record_weights(encoder, decoder)
        if states:
            self._record_states(encoder, decoder)

    def _record_states(self, encoder: Any, decoder: Any) -> None:
        def before(_: nn.Module, inputs: tuple[Any, ...]) -> None:
            self.hidden = (inputs[1].gather(inputs[0]),)

        def before_decoder(_: nn.Module, inputs: tuple[Any, ...]) -> None:
            self.decoder_hidden = (inputs[0],)

        after = self._append("hidden", lambda _, inputs, output: inputs[1].gather(output))
        self._before.append((encoder.layers[0], before))
        self._hooks += [(layer, after) for layer in encoder.layers]
        if decoder is not None:
            after = self._append("decoder_hidden", lambda _, inputs, output: output)
            self._before.append((decoder.layers[0], before_decoder))
            self._hooks += [(layer, after) for layer in decoder.layers]
            if decoder.layer_norm is not None:
                self._hooks.append((decoder.layer_norm, self._last_of_decoder))

    def _record_weights(self, encoder: Any, decoder: Any) -> None:
        def of_tokens(module: Any, inputs: tuple[Any, ...], output: Any) -> Tensor:
            return in_input_order(module.weights(*inputs), inputs[1], keys=True)

        def of_sentences(module: Any, inputs: tuple[Any, ...], output: Any) -> Tensor:
            return in_input_order(module.weights(*inputs), inputs[1], keys=False)

        def plain(module: Any, inputs: tuple[Any, ...], output: Any) -> Tensor:
            return module.weights(*inputs)

        for layer in encoder.layers:
            self._hooks.append((layer.self_attn, self._append("attentions", of_tokens)))
            if layer.sentence_attn is not None:
                weights = of_sentences if layer.queries == "tokens" else plain
                self._hooks.append((layer.sentence_attn, self._append("sentences", weights)))
        if (top := getattr(encoder, "hierarchical_encoder", None)) is not None:
            self._hooks += [(layer.self_attn, self._append("sentences", plain)) for layer in top.layers]
        for layer in [] if decoder is None else decoder.layers:
            self._hooks.append((layer.self_attn, self._append("decoder_attentions", plain)))
            self._hooks.append((layer.encoder_attn, self._append("cross", plain)))
            if layer.sentence_attn is not None:
                self._hooks.append((layer.sentence_attn, self._append("cross_sentences", plain)))

    def _last_of_decoder(self, _: nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
        self.decoder_hidden = (*self.decoder_hidden[:-1], output)

    def _append(self, name: str, value: Callable[[Any, tuple[Any, ...], Any], Tensor]) -> Hook:
        def hook(module: nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
            setattr(self, name, (*getattr(self, name), value(module, inputs, output)))

        return hook

    def __enter__(self) -> Recording:
        self._handles = [module.register_forward_hook(hook) for module, hook in self._hooks]
        self._handles += [module.register_forward_pre_hook(hook) for module, hook in self._before]
        for each in self._recomputed:
            each.checkpoint = False
        return self

    def __exit__(self, *unused: object) -> None:
        for handle in self._handles:
            handle.remove()
        for each in self._recomputed:
            each.checkpoint = True


def check_attentions(encoder: Any) -> None:
    """Raises ValueError for an encoder whose attention is no matrix of all tokens by all tokens."""
    for layer in encoder.layers:
        attention: HeadProjections | None = getattr(layer, "self_attn", None)
        if type(layer) is not EncoderLayer or not isinstance(attention, FullAttention):
            what = type(layer if attention is None else attention).__name__
            raise ValueError(
                f"output_attentions=True: {what} has no weights between all tokens; `hat look` shows what it has"
            )


def in_input_order(weights: Tensor, layout: BatchLayout, keys: bool) -> Tensor:
    """Maps (B, H, T', K) weights of slots -> (B, H, T, K) of input tokens, zeros for padding.

    With `keys` the K keys are slots, too, and become T input tokens.
    """

    def gathered(x: Tensor) -> Tensor:
        return layout.gather(x.flatten(2)).unflatten(2, x.shape[2:])

    if layout.slots is None:
        return weights
    weights = gathered(weights.transpose(1, 2)).transpose(1, 2)
    return gathered(weights.permute(0, 3, 1, 2)).permute(0, 2, 3, 1) if keys else weights
