/**
 * The promises of several agents: called, handed over to, named by plans, killed and finished by others.
 */
import { benched, counted, existing, type Line } from "./support.ts"

export const team = async (): Promise<ReadonlyArray<Line>> => [
  counted(
    "a support desk killed at random moments, finished by another process",
    ["test/reliability/desk.test.ts"],
    "desk kills",
    50
  ),
  existing("a tree of agents and a hand-over, cut off at every record in every way", [
    "test/reliability/crashMatrix.test.ts"
  ]),
  ...benched("team")
]
