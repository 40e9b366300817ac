/**
 * The promises of several agents: called, handed over to, named by plans, killed and finished by others.
 */
import { benched, counted, existing, type Line } from "./support.ts"

export const team = async (): Promise<ReadonlyArray<Line>> => [
  existing("agents as callables: both dialects, schemas, concurrency, budgets, depth, questions from the root", [
    "test/agents/calls.test.ts"
  ]),
  existing("hand-over: event, history in the other dialect, thinking, limits, resume, fork", [
    "test/agents/handoff.test.ts"
  ]),
  existing("hand-off there and back over the wires of two vendors", ["test/provider/handoff.test.ts"]),
  existing("skills as values, with the services of their runs", ["test/agents/skills.test.ts"]),
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
