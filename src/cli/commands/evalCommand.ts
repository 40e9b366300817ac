/**
 * `kernai eval`: how often answers are right.
 */

import { Argument, Command, Flag } from "effect/cli"
import * as Effect from "effect/Effect"
import { help } from "../exit.ts"
import * as Shared from "./flags.ts"

// There is no person to ask.
const { yes: _, ...agent } = Shared.agent

const flags = {
  paths: Argument.String("path").pipe(
    Argument.withDescription("A data set (.jsonl, .csv), or a file or folder of scenarios, whose code runs"),
    Argument.atLeast(1)
  ),
  ...agent,
  scorer: Shared.text(
    "scorer",
    "scorer",
    "exact (default), contains, regex=PATTERN, schema=FILE, similarity=0.8, judge=MODEL, or a module; repeatable"
  ).pipe(Flag.atLeast(0)),
  criteria: Shared.optionalText("criteria", "text", "The criteria of a judge (default: the answer is right)"),
  repeats: Shared.positive("repeats", "number", "Attempts at each case (1)").pipe(Flag.withDefault(1)),
  threshold: Flag.Finite("threshold").pipe(
    Flag.filter(
      (share) => share >= 0 && share <= 1,
      () => "a number from 0 to 1"
    ),
    Flag.withMetavar("<share>"),
    Flag.withDescription("The share of attempts that must pass (1)"),
    Flag.withDefault(1)
  ),
  concurrency: Shared.positive("concurrency", "number", "Attempts at once (2)").pipe(Flag.withDefault(2)),
  offline: Shared.toggle(
    "offline",
    "Ask no model: play the 'replies' of the data set, or the scripts of the scenarios"
  ),
  html: Shared.optionalText("html", "file", "Also write the report as a page"),
  json: Shared.toggle("json", "Print the report as a JSON object"),
  color: Shared.color
}

/** The values of the flags of `eval`. */
export type EvalFlags = Shared.Values<typeof flags>

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
