"""Convolutional networks, small but of the real form."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def conv(a: int, b: int, k: int = 3, s: int = 1, g: int = 1, act: nn.Module | None = None) -> nn.Sequential:
    layers: list[nn.Module] = [nn.Conv2d(a, b, k, s, k // 2, groups=g, bias=False), nn.BatchNorm2d(b)]
    return nn.Sequential(*layers, *([] if act is None else [act]))


class Plain(nn.Sequential):
    def __init__(self) -> None:
        super().__init__(
            nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(),
            nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16 * 8 * 8, 32), nn.ReLU(), nn.Dropout(0.5), nn.Linear(32, 10),
        )  # fmt: skip


class Basic(nn.Module):
    def __init__(self, a: int, b: int, s: int = 1) -> None:
        super().__init__()
        self.body = nn.Sequential(conv(a, b, 3, s, act=nn.ReLU(inplace=True)), conv(b, b))
        self.skip = nn.Identity() if a == b and s == 1 else conv(a, b, 1, s)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.body(x) + self.skip(x))


class Bottleneck(nn.Module):
    def __init__(self, a: int, b: int, s: int = 1) -> None:
        super().__init__()
        self.body = nn.Sequential(
            conv(a, b // 4, 1, act=nn.ReLU()), conv(b // 4, b // 4, 3, s, act=nn.ReLU()), conv(b // 4, b, 1)
        )
        self.skip = conv(a, b, 1, s) if a != b or s != 1 else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.body(x) + self.skip(x))


class Head(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.fc = nn.Linear(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1))


def residual() -> nn.Module:
    blocks = [Basic(16, 16), Basic(16, 16), Basic(16, 32, 2), Bottleneck(32, 32), Bottleneck(32, 64, 2)]
    return nn.Sequential(conv(3, 16, act=nn.ReLU()), nn.MaxPool2d(3, 2, 1), *blocks, Head(64))


class SqueezeExcite(nn.Module):
    def __init__(self, width: int, act: nn.Module, gate: nn.Module) -> None:
        super().__init__()
        self.reduce, self.act = nn.Conv2d(width, width // 4, 1), act
        self.expand, self.gate = nn.Conv2d(width // 4, width, 1), gate

    def forward(self, x: Tensor) -> Tensor:
        return x * self.gate(self.expand(self.act(self.reduce(x.mean((2, 3), keepdim=True)))))


class LinearSqueezeExcite(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(width, width // 4), nn.ReLU(), nn.Linear(width // 4, width), nn.Sigmoid())

    def forward(self, x: Tensor) -> Tensor:
        b, c = x.shape[:2]
        return x * self.body(F.adaptive_avg_pool2d(x, 1).view(b, c)).view(b, c, 1, 1)


class Inverted(nn.Module):
    def __init__(self, a: int, b: int, s: int, act: nn.Module, se: nn.Module | None = None, k: int = 3) -> None:
        super().__init__()
        middle = [se] if se is not None else []
        self.body = nn.Sequential(
            conv(a, 4 * a, 1, act=act), conv(4 * a, 4 * a, k, s, 4 * a, act=act), *middle, conv(4 * a, b, 1)
        )
        self.skip = a == b and s == 1

    def forward(self, x: Tensor) -> Tensor:
        return x + self.body(x) if self.skip else self.body(x)


def mobilenet_v2() -> nn.Module:
    blocks = [Inverted(8, 8, 1, nn.ReLU6()), Inverted(8, 16, 2, nn.ReLU6()), Inverted(16, 16, 1, nn.ReLU6())]
    return nn.Sequential(conv(3, 8, 3, 2, act=nn.ReLU6()), *blocks, conv(16, 32, 1, act=nn.ReLU6()), Head(32))


def mobilenet_v3() -> nn.Module:
    def se(width: int) -> nn.Module:
        return SqueezeExcite(width, nn.ReLU(), nn.Hardsigmoid())

    blocks = [Inverted(8, 8, 1, nn.ReLU(), se(32)), Inverted(8, 16, 2, nn.Hardswish(), se(32), 5)]
    blocks += [Inverted(16, 16, 1, nn.Hardswish())]
    return nn.Sequential(conv(3, 8, 3, 2, act=nn.Hardswish()), *blocks, Head(16))


def efficientnet() -> nn.Module:
    def se(width: int) -> nn.Module:
        return SqueezeExcite(width, nn.SiLU(), nn.Sigmoid())

    blocks = [Inverted(8, 8, 1, nn.SiLU(), se(32)), Inverted(8, 16, 2, nn.SiLU(), se(32)), LinearSqueezeExcite(16)]
    return nn.Sequential(conv(3, 8, 3, 2, act=nn.SiLU()), *blocks, Head(16))


class Dense(nn.Module):
    def __init__(self, a: int, growth: int, layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Sequential(nn.BatchNorm2d(c), nn.ReLU(), nn.Conv2d(c, growth, 3, padding=1, bias=False))
            for c in range(a, a + layers * growth, growth)
        )

    def forward(self, x: Tensor) -> Tensor:
        found = [x]
        for layer in self.layers:
            found.append(layer(torch.cat(found, 1)))
        return torch.cat(found, 1)


def densenet() -> nn.Module:
    transition = nn.Sequential(nn.BatchNorm2d(24), nn.ReLU(), nn.Conv2d(24, 12, 1, bias=False), nn.AvgPool2d(2))
    return nn.Sequential(
        conv(3, 12), Dense(12, 4, 3), transition, Dense(12, 4, 2), nn.BatchNorm2d(20), nn.ReLU(), Head(20)
    )


class InceptionBlock(nn.Module):
    def __init__(self, a: int) -> None:
        super().__init__()

        def wide(p: int, q: int, k: tuple[int, int]) -> nn.Sequential:
            pad = (k[0] // 2, k[1] // 2)
            return nn.Sequential(nn.Conv2d(p, q, k, padding=pad, bias=False), nn.BatchNorm2d(q, eps=1e-3), nn.ReLU())

        self.one = conv(a, 8, 1, act=nn.ReLU())
        self.seven = nn.Sequential(conv(a, 8, 1, act=nn.ReLU()), wide(8, 8, (1, 7)), wide(8, 8, (7, 1)))
        self.triple = nn.Sequential(conv(a, 4, 1, act=nn.ReLU()), conv(4, 8, act=nn.ReLU()), conv(8, 8, act=nn.ReLU()))
        self.pool = conv(a, 8, 1, act=nn.ReLU())

    def forward(self, x: Tensor) -> Tensor:
        pooled = self.pool(F.avg_pool2d(x, 3, 1, 1))
        return torch.cat([self.one(x), self.seven(x), self.triple(x), pooled], 1)


def inception() -> nn.Module:
    reduction = nn.MaxPool2d(3, 2)
    return nn.Sequential(conv(3, 16, act=nn.ReLU()), InceptionBlock(16), reduction, InceptionBlock(32), Head(32))


class ShuffleUnit(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        half = width // 2
        self.body = nn.Sequential(
            conv(half, half, 1, act=nn.ReLU()), conv(half, half, 3, 1, half), conv(half, half, 1, act=nn.ReLU())
        )

    def forward(self, x: Tensor) -> Tensor:
        a, b = x.chunk(2, 1)
        x = torch.cat([a, self.body(b)], 1)
        n, c, h, w = x.shape
        return x.view(n, 2, c // 2, h, w).transpose(1, 2).reshape(n, c, h, w)


def shufflenet() -> nn.Module:
    return nn.Sequential(
        conv(3, 16, 3, 2, act=nn.ReLU()), ShuffleUnit(16), ShuffleUnit(16), conv(16, 32, 1, act=nn.ReLU()), Head(32)
    )


class ConvNextBlock(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.up, self.act, self.down = nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        self.gamma = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
        y = self.gamma * self.down(self.act(self.up(y)))
        return x + y.permute(0, 3, 1, 2)


def convnext() -> nn.Module:
    stem = nn.Conv2d(3, 16, 4, 4)
    return nn.Sequential(stem, nn.GroupNorm(1, 16), ConvNextBlock(16), ConvNextBlock(16), Head(16))


class UNet(nn.Module):
    def __init__(self, up: str) -> None:
        super().__init__()
        self.down1, self.down2 = conv(3, 8, act=nn.ReLU()), conv(8, 16, act=nn.ReLU())
        self.middle, self.up = conv(16, 32, act=nn.ReLU()), up
        self.rise2 = nn.ConvTranspose2d(32, 16, 2, 2) if up == "deconv" else nn.Conv2d(32, 16, 1)
        self.rise1 = nn.ConvTranspose2d(16, 8, 3, 2, 1, 1) if up == "deconv" else nn.Conv2d(16, 8, 1)
        self.join2, self.join1 = conv(32, 16, act=nn.ReLU()), conv(16, 8, act=nn.ReLU())
        self.out = nn.Conv2d(8, 2, 1)

    def _rise(self, x: Tensor, layer: nn.Module) -> Tensor:
        if self.up == "deconv":
            return layer(x)
        options = {"align_corners": False} if self.up == "bilinear" else {}
        return layer(F.interpolate(x, scale_factor=2, mode=self.up, **options))

    def forward(self, x: Tensor) -> Tensor:
        a = self.down1(x)
        b = self.down2(F.max_pool2d(a, 2))
        c = self.middle(F.max_pool2d(b, 2))
        b = self.join2(torch.cat([self._rise(c, self.rise2), b], 1))
        return self.out(self.join1(torch.cat([self._rise(b, self.rise1), a], 1)))


def group_norm() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 16, 3), nn.GroupNorm(4, 16), nn.ReLU(), nn.Conv2d(16, 8, 3), nn.GroupNorm(2, 8, eps=1e-6), Head(8)
    )


def instance_norm() -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.InstanceNorm2d(8, affine=True), nn.ReLU(), Head(8))


def activations() -> nn.Module:
    acts = [
        nn.PReLU(),
        nn.PReLU(8),
        nn.ELU(),
        nn.LeakyReLU(0.2),
        nn.Mish(),
        nn.Softplus(),
        nn.GELU("tanh"),
        nn.Tanh(),
        nn.SELU(),
    ]
    layers: list[nn.Module] = [nn.Conv2d(3, 8, 1)]
    for act in acts:
        layers += [act, nn.Conv2d(8, 8, 1)]
    return nn.Sequential(*layers, nn.Hardtanh(), nn.LogSoftmax(1))


class Pooled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.fc = nn.Conv2d(3, 4, 3, padding=1), nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = F.pad(F.adaptive_avg_pool2d(self.conv(x), (7, 5)), (1, 2, 1, 0))
        x = F.max_pool2d(F.pad(x, (1, 0, 1, 0), mode="reflect"), 2, ceil_mode=True)
        return F.softmax(self.fc(F.avg_pool2d(x, 2, 1, 1, count_include_pad=True).flatten(1)[:, :64]), -1)


class PreActivation(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem, self.out = nn.Conv2d(3, 8, 3, padding=1, bias=False), Head(8)
        self.norms = nn.ModuleList(nn.BatchNorm2d(8) for _ in range(5))
        self.convs = nn.ModuleList(nn.Conv2d(8, 8, 3, padding=1, bias=False) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        for i in (0, 2):
            y = self.convs[i](F.relu(self.norms[i](x)))
            x = x + self.convs[i + 1](F.relu(self.norms[i + 1](y)))
        return self.out(F.relu(self.norms[4](x)))


IMAGE = {
    "plain": Plain,
    "residual": residual,
    "mobilenet_v2": mobilenet_v2,
    "mobilenet_v3": mobilenet_v3,
    "efficientnet": efficientnet,
    "densenet": densenet,
    "inception": inception,
    "shufflenet": shufflenet,
    "convnext": convnext,
    "unet_deconv": lambda: UNet("deconv"),
    "unet_nearest": lambda: UNet("nearest"),
    "unet_bilinear": lambda: UNet("bilinear"),
    "group_norm": group_norm,
    "instance_norm": instance_norm,
    "activations": activations,
    "pre_activation": PreActivation,
}
"""Networks that read one image of 3 x 32 x 32."""
