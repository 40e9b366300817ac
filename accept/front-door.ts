/**
 * The front door: what a person or an agent reads and types first, from the package as it is published.
 */
import { existing, type Line } from "./support.ts"
import { documents } from "./frontDoorDocs.ts"
import { published } from "./frontDoorPackage.ts"

export const frontDoor = async (): Promise<ReadonlyArray<Line>> => [
  ...(await documents()),
  existing("runs are listed, answered and resumed from the command line", ["test/cli/runs.test.ts"]),
  existing("agents and programs of a module run, also in a worker, and none under a stand-in", [
    "test/cli/agentModule.test.ts"
  ]),
  existing("kernai dev reloads agents while they are written", ["test/cli/dev.test.ts"]),
  existing("hostile servers and the commands about servers", ["test/mcp/Hostile.test.ts", "test/cli/mcp.test.ts"]),
  ...(await published())
]
