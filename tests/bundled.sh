#!/bin/sh
# The bundled models are those that fixtures were recorded with. usage: tests/bundled.sh
cd "$(dirname "$0")/../models" && sha256sum --quiet -c SHA256SUMS && exit
echo "FAILED: tests have recorded answers of other models; models/update.sh records them anew (models/README.md)"
exit 1
