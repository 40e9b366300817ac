/**
 * Runs scenario files one after the other, and shows what happened in each.
 */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as Layer from "effect/Layer"
import * as Path from "effect/Path"
import type { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import type * as Scope from "effect/Scope"
import type { JsonObject } from "../internal/base/json.ts"
import * as Model from "../Model.ts"
import type { SkillRegistry } from "../SkillRegistry.ts"
import type { ProtocolRegistry } from "../ProtocolRegistry.ts"
import * as Scenario from "../testing/Scenario.ts"
import { Codes, CommandFailed, unread, usage } from "./exit.ts"
import { load } from "./selfImport.ts"
import { Screen } from "./screen.ts"
import * as Text from "./terminalText.ts"
import * as Tree from "./scenarioTree.ts"

/** What is run, and how it is told. */
export interface Options {
  /** Scenario files, and folders of them. */
  readonly paths: ReadonlyArray<string>
  /** `<provider>/<model>`, or `script/<style>`; undefined: offline where a scenario can. */
  readonly model: string | undefined
  /** The folder of the logs; undefined for none. */
  readonly log: string | undefined
  /** One JSON line for each scenario, instead of trees. */
  readonly json: boolean
  readonly colors: boolean | undefined
}

/** Runs scenarios. Fails when one of them did, or when none could run. */
export const runScenarios = Effect.fnUntraced(function* (options: Options) {
  const screen = yield* Screen
  const look = { columns: screen.columns, colors: options.colors ?? screen.colors }
  const scenarios = yield* Effect.flatMap(filesOf(options.paths), (files) => Effect.forEach(files, open))
  const reports: Array<Scenario.Report> = []
  for (const scenario of scenarios.flat()) {
    const report = yield* Scenario.run(scenario, yield* runOptions(scenario, options.model))
    const log = options.log === undefined ? undefined : yield* saved(report, options.log)
    if (options.json) screen.out(`${Text.json(summary(report, log))}\n`)
    else screen.progress(`${Tree.lines(report, look).join("\n")}\n`)
    reports.push(report)
  }
  const of = (status: Scenario.Status) => reports.filter((report) => report.status === status).length
  const totals = `${of("ok")} ok, ${of("fail")} failed, ${of("skipped")} skipped`
  if (!options.json) screen.out(`${totals}${options.log === undefined ? "" : `; logs in ${Text.flat(options.log)}`}\n`)
  if (of("fail") > 0) return yield* new CommandFailed({ code: Codes.failed, reason: totals })
  if (of("ok") === 0) return yield* usage(totals)
})

/** What a machine is told of a report. */
const summary = (report: Scenario.Report, log: string | undefined) => {
  const { recording: _, skills: __, ...json } = Scenario.toJson(report)
  return { ...json, log: log ?? null }
}

const saved = (report: Scenario.Report, directory: string) =>
  Effect.mapError(Scenario.save(report, directory), (error) => usage(`the log cannot be kept: ${error.message}`))

// ---------------------------------------------------------------- files

/** The scenario files of these paths, folders read, in order of their names. */
export const filesOf = Effect.fnUntraced(function* (paths: ReadonlyArray<string>) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const files = yield* Effect.forEach(paths, (name) =>
    Effect.gen(function* () {
      if ((yield* fs.stat(name)).type !== "Directory") return [name]
      const names = (yield* fs.readDirectory(name)).filter(isScenarioFile).toSorted()
      return names.map((file) => path.join(name, file))
    }).pipe(Effect.mapError((error) => unread(Text.excerpt(name, 200), error)))
  )
  const found = files.flat()
  return found.length === 0 ? yield* usage(`no scenario in ${Text.excerpt(paths.join(", "), 200)}`) : found
})

const isScenarioFile = (name: string): boolean =>
  /\.m?[jt]s$/.test(name) && !/^[._]/.test(name) && !/\.d\.m?ts$/.test(name)

/** The scenarios a file exports; its code runs with all the rights of the process. */
const open = Effect.fnUntraced(function* (file: string) {
  const path = yield* Path.Path
  const name = Text.excerpt(file, 200)
  const url = yield* Effect.mapError(path.toFileUrl(path.resolve(file)), () => usage(`${name} is no file`))
  const exports = yield* Effect.mapError(load(url.href), (error) =>
    usage(`${name} cannot be loaded: ${Text.excerpt(error.message, 400)}`)
  )
  const scenarios = new Set(Object.values(exports).flat().filter(Scenario.isScenario))
  return scenarios.size === 0 ? yield* usage(`${name} exports no scenario`) : [...scenarios]
})

// ---------------------------------------------------------------- models

/** Who plays a scenario: the model named, else its own offline one, else the usual one (BP-181). */
const runOptions = Effect.fnUntraced(function* (scenario: Scenario.Scenario, named: string | undefined) {
  const services = yield* Effect.context<FileSystem.FileSystem | ChildProcessSpawner>()
  const connect = (mcp: string | JsonObject) => Effect.provideContext(connectMcp(mcp), services)
  const name = named ?? (scenario.offline === undefined ? usual : undefined)
  if (name === undefined) return { connect }
  const style = styles.find((style) => name === `script/${style}`)
  if (style === undefined) {
    const { resolve } = yield* Effect.promise(() => import("./live.ts"))
    return { connect, cast: yield* resolve(name) }
  }
  const cast = Scenario.offline(scenario, style)
  return cast === undefined
    ? { connect }
    : { connect, cast: yield* Effect.mapError(cast, ({ message }) => usage(message)) }
})

const styles: ReadonlyArray<Scenario.Style> = ["whole", "words", "chars"]

const usual = `ollama/${Model.llama31.id}`

/** Connects the MCP servers of a scenario. One that is away is a reason not to run it (BP-183). */
const connectMcp = Effect.fnUntraced(function* (
  mcp: string | JsonObject
): Effect.fn.Return<
  void,
  { readonly message: string },
  SkillRegistry | ProtocolRegistry | FileSystem.FileSystem | ChildProcessSpawner | Scope.Scope
> {
  const { layerConfig, McpHub } = yield* Effect.promise(() => import("../mcp/McpHub.ts"))
  const context = yield* Layer.build(Layer.provide(layerConfig(mcp), FetchHttpClient.layer))
  const servers = yield* Context.get(context, McpHub).status
  const away = servers.find((server) => server.state !== "connected")
  if (away !== undefined) {
    const why = away.problem === undefined ? "" : `: ${away.problem.message}`
    return yield* Effect.fail({ message: `MCP server '${away.name}' is ${away.state}${why}` })
  }
})
