/**
 * The front door: what a person or an agent reads and types first, from the package as it is published.
 */
import { existing, type Line } from "./support.ts"
import { documents } from "./frontDoorDocs.ts"
import { published } from "./frontDoorPackage.ts"

export const frontDoor = async (): Promise<ReadonlyArray<Line>> => [
  ...(await documents()),
  existing("runs are traced where a Tracer is there, without their contents", ["test/Telemetry.test.ts"]),
  ...(await published())
]
