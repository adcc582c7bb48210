"""A command whose library may be missing."""

import sacrebleu as sacrebleu
