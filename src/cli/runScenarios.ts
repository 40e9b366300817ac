/** Runs scenario files one after the other, and shows the result of each. */

import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Scenario from "../testing/Scenario.ts"
import type { ScenarioFlags } from "./commands/scenarioFlags.ts"
import { failed, usage } from "./exit.ts"
import { filesOf, open, runOptions } from "./scenarioFiles.ts"
import { Screen } from "./screen.ts"
import * as Text from "./terminalText.ts"
import { draw } from "./scenarioTree.ts"
import * as Store from "./storeFlag.ts"

/** Runs scenarios. Fails if one failed, or if none could run. */
export const runScenarios = Effect.fnUntraced(function* (options: ScenarioFlags) {
  const screen = yield* Screen
  const { json, log } = options
  const look = { columns: screen.columns, colors: options.color ?? screen.colors }
  const scenarios = yield* Effect.flatMap(filesOf(options.paths), (files) => Effect.forEach(files, open))
  const stores = options.store === undefined ? undefined : yield* opened(options.store, options.create)
  const counts = { ok: 0, fail: 0, skipped: 0 }
  for (const scenario of scenarios.flat()) {
    const report = yield* Scenario.run(scenario, {
      ...(yield* runOptions(scenario, options.model)),
      dialect: options.dialect,
      stores
    })
    const file = log === undefined ? null : yield* save(report, log)
    if (json) screen.out(`${Text.json(summaryOf(report, file))}\n`)
    else screen.progress(`${draw(report, look).join("\n")}\n`)
    counts[report.status]++
  }
  const totals = `${counts.ok} ok, ${counts.fail} failed, ${counts.skipped} skipped`
  if (!json) screen.out(`${totals}${log === undefined ? "" : `; logs in ${Text.flat(log)}`}\n`)
  if (counts.fail > 0) return yield* failed(totals)
  if (counts.ok === 0) return yield* usage(totals)
}, Effect.scoped)

/** Opens a store for all runs of the process. */
const opened = Effect.fnUntraced(function* (store: string, create: boolean) {
  const { media, runs } = yield* Store.openNamed({ store, create })
  return Layer.succeedContext(yield* Layer.build(Layer.merge(runs, media)))
})

const summaryOf = (report: Scenario.Report, log: string | null) => {
  const { recording: _, skills: __, ...json } = Scenario.toJson(report)
  return { ...json, log }
}

const save = (report: Scenario.Report, folder: string) =>
  Effect.mapError(Scenario.save(report, folder), (error) => usage(`the log cannot be written: ${error.message}`))
