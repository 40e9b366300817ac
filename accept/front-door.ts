/**
 * The front door: what a person or an agent reads and types first, from the package as it is published.
 */
import { existing, type Line } from "./support.ts"
import { documents } from "./frontDoorDocs.ts"
import { readable } from "./readable.ts"
import { published } from "./frontDoorPackage.ts"

export const frontDoor = async (): Promise<ReadonlyArray<Line>> => [
  ...(await documents()),
  ...(await readable()),
  existing("every command's help fits 80 columns, and the same flags are everywhere", ["test/cli/root.test.ts"]),
  existing("a run keeps its flags; ids are short, hints can be pasted, exit codes are as documented", [
    "test/cli/settings.test.ts",
    "test/cli/storeFlag.test.ts",
    "test/cli/runs.test.ts",
    "test/cli/runs",
    "test/cli/exit.test.ts"
  ]),
  existing("configs of other programs are read, and their servers get what the page says", [
    "test/mcp/McpConfig.test.ts",
    "test/mcp/Hostile.test.ts",
    "test/cli/mcp.test.ts"
  ]),
  existing("kernai eval measures data sets and scenarios, offline and live", [
    "test/testing/Evaluation.test.ts",
    "test/cli/eval"
  ]),
  existing("runs are traced where a Tracer is there, without their contents", ["test/Telemetry.test.ts"]),
  ...(await published())
]
