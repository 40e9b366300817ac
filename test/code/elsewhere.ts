/**
 * Checks the interpreter in the runtime that runs this, and replays the programs that another runtime recorded into the
 * file of its argument: prints a JSON line with the number of its checks, and those that failed. With `record`, prints
 * such a recording instead.
 */
import { Cause, Context, Effect, Exit, Layer } from "effect"
import { CodeInterpreter } from "kernai"
import { Code } from "kernai/code"
import { CodeInterpreterSuite } from "kernai/testing"
import { readFileSync } from "node:fs"
import { record, replay } from "./recorded.ts"

const open = Effect.map(Layer.build(Code.layerQuickJs()), (services) =>
  Context.get(services, CodeInterpreter.CodeInterpreter)
)

/** What a runtime does. */
export interface Checked {
  readonly checks: number
  readonly failed: ReadonlyArray<string>
}

const [, , asked = ""] = process.argv
if (asked === "record") {
  console.log(await Effect.runPromise(record))
  process.exit(0)
}
const name = "replays the programs that another runtime recorded"
const checks = [
  ...CodeInterpreterSuite.checks(open),
  { name, run: Effect.suspend(() => replay(readFileSync(asked, "utf8"))) }
]
const failed: Array<string> = []
for (const { name, run } of checks) {
  const exit = await Effect.runPromiseExit(run)
  if (Exit.isFailure(exit)) failed.push(`${name}: ${Cause.pretty(exit.cause).split("\n")[0]}`)
}
const checked: Checked = { checks: checks.length, failed }
console.log(JSON.stringify(checked))
