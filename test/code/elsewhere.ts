/**
 * Checks the interpreter in the runtime that runs this: prints a JSON line with the number of its checks, and those that
 * failed.
 */
import { Cause, Context, Effect, Exit, Layer } from "effect"
import { CodeInterpreter } from "kernai"
import { Code } from "kernai/code"
import { CodeInterpreterSuite } from "kernai/testing"

const open = Effect.map(Layer.build(Code.layerQuickJs()), (services) =>
  Context.get(services, CodeInterpreter.CodeInterpreter)
)

/** What a runtime does. */
export interface Checked {
  readonly checks: number
  readonly failed: ReadonlyArray<string>
}

const checks = CodeInterpreterSuite.checks(open)
const failed: Array<string> = []
for (const { name, run } of checks) {
  const exit = await Effect.runPromiseExit(run)
  if (Exit.isFailure(exit)) failed.push(`${name}: ${Cause.pretty(exit.cause).split("\n")[0]}`)
}
const checked: Checked = { checks: checks.length, failed }
console.log(JSON.stringify(checked))
