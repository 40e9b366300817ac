/** The flags of `kernai eval`. */

import { Argument, Flag } from "effect/cli"
import * as Shared from "./flags.ts"

// There is no person to ask.
const { yes: _, ...agent } = Shared.agent

/** The default folder of reports, which the studio shows. */
export const defaultReports = ".kernai/evals"

export const flags = {
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
  log: Shared.optionalText("log", "folder", `Where the report is written, for 'kernai studio' (${defaultReports})`),
  json: Shared.toggle("json", "Print the report as a JSON object"),
  color: Shared.color
}

/** The values of the flags of `eval`. */
export type EvalFlags = Shared.Values<typeof flags>
