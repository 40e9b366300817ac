/**
 * Evaluates an agent, or scenarios, over data sets.
 */

import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Kernel from "../../Kernel.ts"
import * as Evaluation from "../../testing/Evaluation.ts"
import * as Scenario from "../../testing/Scenario.ts"
import * as CliAgent from "../cliAgent.ts"
import { createFile, stamp } from "../../kit/freshFile.ts"
import { defaultReports, type EvalFlags } from "../commands/evalFlags.ts"
import { failed, usage } from "../exit.ts"
import { filesOf, open, runOptions } from "../scenarioFiles.ts"
import { Screen } from "../screen.ts"
import * as Settings from "../settings.ts"
import * as Store from "../storeFlag.ts"
import * as Text from "../terminalText.ts"
import * as DataSet from "./dataSet.ts"
import { pageOf } from "./evalPage.ts"
import * as EvalText from "./evalText.ts"
import * as Scorers from "./scorerFlag.ts"

/** Asks every case and prints the report. Fails below the threshold, or if nothing could be asked. */
export const evaluate = Effect.fnUntraced(function* (options: EvalFlags) {
  const screen = yield* Screen
  const { concurrency, html, json, repeats, threshold } = options
  const look = { columns: screen.columns, colors: options.color ?? screen.colors }
  const scorers = yield* Effect.forEach(options.scorer, (flag) => Scorers.read(flag, options))
  const { ask, cases } = yield* subjectOf(options)
  const usual = cases.some(({ expected }) => expected !== undefined) ? [exactWhereExpected] : []
  const report = yield* Evaluation.run({
    cases,
    ask,
    scorers: scorers.length === 0 ? usual : scorers,
    repeats,
    concurrency,
    onAttempt: (attempt) =>
      Effect.sync(() => (json ? undefined : screen.progress(`${EvalText.lineOf(attempt, repeats, look)}\n`)))
  })
  const summary = EvalText.summaryOf(report, threshold)
  const name = options.paths.join(", ")
  const kept = { name, ok: report.passRate >= threshold, threshold, ...report }
  if (json) screen.out(`${Text.json(kept)}\n`)
  else screen.out(`${EvalText.scorersOf(report, look)}${summary}\n`)
  if (html !== undefined) yield* writePage(html, pageOf(report, name, threshold))
  yield* keep(options.log ?? defaultReports, kept)
  const [first] = report.cases.flatMap(({ attempts }) => attempts)
  if (report.attempts === report.skipped) return yield* usage(`nothing could be asked: ${first?.reason ?? "no case"}`)
  if (report.passRate < threshold) return yield* failed("the pass rate is below the threshold")
}, Effect.scoped)

/** Compares with the expected answer, and passes any answer if none is expected. */
const exactWhereExpected: Evaluation.Scorer = {
  name: Evaluation.exact.name,
  score: (answer, question) =>
    question.expected === undefined
      ? Effect.succeed({ score: 1, isPass: true })
      : Evaluation.exact.score(answer, question)
}

/** Writes the report for the studio. A gate in a folder that cannot be written decides all the same. */
const keep = (folder: string, report: Evaluation.Report) =>
  Effect.catch(createFile(folder, `eval_${stamp(report.startedAt)}`, `${JSON.stringify(report)}\n`), ({ message }) =>
    Effect.map(Screen, ({ progress }) => progress(`no report was written: ${Text.flat(message)}\n`))
  )

/** Writes a page, and replaces an older one. */
const writePage = Effect.fnUntraced(function* (file: string, html: string) {
  const fs = yield* FileSystem.FileSystem
  yield* Effect.mapError(fs.writeFileString(file, html, { mode: 0o600 }), () =>
    usage(`${Text.excerpt(file, 80)} cannot be written`)
  )
})

/** Returns the cases, and the function that asks them. */
const subjectOf = Effect.fnUntraced(function* (options: EvalFlags) {
  const { paths } = options
  const rows = yield* DataSet.readAll(paths.filter(DataSet.isDataSet))
  const files = paths.filter((path) => !DataSet.isDataSet(path))
  if (files.length === 0) return { cases: rows, ask: yield* askAgent(options) }
  const scenarios = (yield* Effect.flatMap(filesOf(files), (files) => Effect.forEach(files, open))).flat()
  return yield* ofScenarios(scenarios, rows, options)
})

type Ask = (row: DataSet.Row) => Effect.Effect<Evaluation.Answer, { readonly message: string } | Evaluation.CaseSkipped>

/** Asks the agent that flags describe. Calls run without asking, since no person can approve them. */
const askAgent = Effect.fnUntraced(function* (options: EvalFlags) {
  const settings = yield* Settings.ofFlags(options)
  const isLive = !options.offline && (settings.model ?? settings.script ?? settings.agent) !== undefined
  const { agent, kernel } = yield* CliAgent.make(settings, Store.memory, {
    yes: true,
    ...(isLive ? {} : { unused: "scripted" })
  })
  const context = yield* Layer.build(kernel)
  const withPrograms = yield* Effect.provideContext(CliAgent.programs(settings), context)
  const asked = withPrograms(agent())
  // A reply without blocks is an answer.
  const scripted = { ...asked, prose: "final" as const }
  const ask: Ask = ({ input, replies }) => {
    if (isLive) return Effect.provideContext(Kernel.run(asked, input), context)
    if (replies === undefined) return Effect.fail(new Evaluation.CaseSkipped({ reason: unanswered }))
    const provider = Scenario.scripted({ root: replies })
    return Effect.provideContext(Kernel.run(scripted, input, { provider }), context)
  }
  return ask
})

const unanswered = "the row has no 'replies', and no model is named"

/** Asks scenarios: the rows, or without rows the scenarios' own questions, which they also judge. */
const ofScenarios = Effect.fnUntraced(function* (
  scenarios: ReadonlyArray<Scenario.Scenario>,
  rows: ReadonlyArray<DataSet.Row>,
  options: EvalFlags
) {
  const { dialect, model, ...others } = yield* Settings.ofFlags(options)
  const idle = Settings.firstOf(others)
  if (idle !== undefined) return yield* usage(`${idle} is not for scenarios, which are agents with skills of their own`)
  const named = options.offline ? "script/whole" : model
  const questions = scenarios.flatMap((scenario): ReadonlyArray<Question> =>
    rows.length === 0
      ? [{ row: { id: scenario.name, input: inputOf(scenario) }, scenario }]
      : rows.map((row) => ({
          row: { ...row, id: scenarios.length === 1 ? row.id : `${scenario.name}/${row.id}` },
          scenario: {
            ...scenario,
            input: row.input,
            expect: undefined,
            offline: row.replies === undefined ? scenario.offline : { root: row.replies }
          }
        }))
  )
  const runs = yield* Effect.forEach(questions, ({ row, scenario }) =>
    Effect.map(runOptions(scenario, named), (run) => [row, Scenario.run(scenario, { ...run, dialect })] as const)
  )
  const runOf = new Map(runs)
  const ask: Ask = (row) => Effect.flatMap(runOf.get(row) ?? Effect.die(new Error(row.id)), answerOf)
  return { cases: questions.map(({ row }) => row), ask }
})

interface Question {
  readonly row: DataSet.Row
  readonly scenario: Scenario.Scenario
}

const inputOf = ({ description, input }: Scenario.Scenario): string => (typeof input === "string" ? input : description)

/** Converts a report to an answer. A result that its scenario does not expect is an answer with a problem. */
const answerOf = ({ costUsd, failure, result, status, steps, usage }: Scenario.Report) => {
  if (status === "skipped") return Effect.fail(new Evaluation.CaseSkipped({ reason: failure?.message ?? "" }))
  if (result === null) return Effect.fail({ message: failure?.message ?? "there is no answer" })
  const problems = failure === null ? [] : [failure.message]
  return Effect.succeed<Evaluation.Answer>({
    text: result,
    turns: steps,
    usage,
    costUsd: costUsd ?? undefined,
    problems
  })
}
