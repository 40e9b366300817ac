/**
 * Checks the unfinished runs of a store against an agent before it is deployed.
 */

import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as Rollout from "../../Rollout.ts"
import * as CliAgent from "../cliAgent.ts"
import type { CheckFlags } from "../commands/runsFlags.ts"
import { asFailure, Codes, CommandFailed } from "../exit.ts"
import { Screen } from "../screen.ts"
import * as Settings from "../settings.ts"
import * as Store from "../storeFlag.ts"
import * as Text from "../terminalText.ts"

/** Lists what the agent would not give its unfinished runs. Fails if there is anything. */
export const check = Effect.fnUntraced(function* (options: CheckFlags) {
  const screen = yield* Screen
  const settings = yield* Settings.ofFlags(options)
  // No model is asked.
  const { agent, kernel } = yield* CliAgent.make(settings, yield* Store.openExisting(options.store), { unused: "none" })
  const counts = { runs: 0, findings: 0 }
  yield* Effect.gen(function* () {
    const withPrograms = yield* CliAgent.programs(settings)
    const one = withPrograms(agent())
    yield* Stream.runForEach(Rollout.unfinished(one), ({ runId, version }) =>
      Effect.map(Rollout.check(one, runId), (findings) => {
        counts.runs += 1
        counts.findings += findings.length
        for (const finding of findings) {
          screen.out(options.json ? `${Text.json({ ...finding, version: version ?? null })}\n` : lineOf(finding))
        }
      })
    )
  }).pipe(Effect.mapError(asFailure), Effect.scoped, Effect.provide(kernel))
  const checked = `${Text.count(counts.runs, "unfinished run")} of ${Text.flat(agent().name)}`
  if (counts.findings === 0) return screen.progress(`${checked}: nothing would break\n`)
  return yield* new CommandFailed({
    code: Codes.failed,
    reason: `${checked}: ${Text.count(counts.findings, "call or run", "calls or runs")} would break`,
    tag: "RolloutBreaks"
  })
})

const lineOf = ({ callId, detail, name, reason, runId }: Rollout.Finding): string => {
  const call = callId === undefined ? "" : `  ${Text.flat(name ?? "")} (${Text.flat(callId)})`
  return `${reason.replace("_", " ").padEnd(10)}${Text.flat(runId)}${call}: ${Text.excerpt(detail, 200)}\n`
}
