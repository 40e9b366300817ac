/**
 * `kernai eval`: how often answers are right.
 */

import { Command } from "effect/cli"
import * as Effect from "effect/Effect"
import { help } from "../exit.ts"
import { flags } from "./evalFlags.ts"

export const evalCommand = Command.make("eval", flags, (input) =>
  Effect.flatMap(
    Effect.promise(() => import("../eval/runEval.ts")),
    (module) => module.evaluate(input)
  )
).pipe(
  Command.withDescription(
    `Ask an agent, or scenarios, every question of a data set, and measure how many answers are right. A row has an 'input'; it may have an 'id', an 'expected' answer, and the 'replies' of a scripted model. Calls run without asking. Exit code 1: fewer passed than --threshold. ${help}`
  ),
  Command.withShortDescription("Measure how often answers are right"),
  Command.withExamples([
    {
      command: "kernai eval capitals.jsonl -m ollama/llama3.1 --scorer contains",
      description: "Ask a local model, and look for the expected texts"
    },
    {
      command: "kernai eval cases.csv -a desk.yaml --scorer judge=openai/gpt-4o --repeats 3",
      description: "Have another model judge the answers of an agent"
    },
    { command: "kernai eval examples/scenarios --threshold 0.9", description: "Run scenarios, which judge themselves" }
  ])
)
