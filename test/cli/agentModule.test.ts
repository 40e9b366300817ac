import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { mkdirSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Agent, Kernel } from "kernai"
import { SqlRunStore } from "kernai/sql"
import { MockProvider } from "kernai/testing"
import { kernai, ollama } from "./support.ts"

/** The folder is inside the project, so that the module finds Effect. */
const scratch = fileURLToPath(new URL("./.agentModule", import.meta.url))

const folder = Effect.acquireRelease(
  Effect.sync(() => {
    const place = `${scratch}-${process.pid}`
    mkdirSync(place, { recursive: true })
    writeFileSync(join(place, "agents.ts"), agents)
    writeFileSync(join(place, "one.ts"), one)
    writeFileSync(join(place, "below.ts"), below)
    writeFileSync(join(place, "none.ts"), "export const answer: number = 42\n")
    writeFileSync(join(place, "script.json"), JSON.stringify([command, '<block type="final">Done.</block>']))
    return place
  }),
  (place) => Effect.sync(() => rmSync(place, { recursive: true, force: true }))
)

const command = '<block type="command" name="greet">{"who":"Ada"}</block>'

const agents = `
import { Context, Effect, Layer, Schema } from "effect"
import { Agent, Program, Skill } from "kernai"

class Greeter extends Context.Service<Greeter, { readonly greeting: string }>()("Greeter") {}

const greet = Skill.make("greet", {
  description: "Greets somebody",
  input: Schema.Struct({ who: Schema.String }),
  execute: ({ who }) => Greeter.useSync(({ greeting }) => greeting + " " + who)
})

export const layer = Layer.succeed(Greeter, { greeting: "Good day" })
export const support = Agent.make({ name: "desk", instructions: "Help.", model: "scripted", skills: [greet] })
export const echo = Program.make("echo", { run: (text: string) => Effect.succeed("echo: " + text) })
`

const one = `
import { Effect } from "effect"
import { Program } from "kernai"
export const only = Program.make("only", { run: () => Effect.succeed("the only one") })
`

const below = `
import { Agent, Program } from "kernai"
const judge = Agent.make({ name: "judge", instructions: "Judge.", model: "ollama/small" })
const clerk = Agent.make({ name: "clerk", instructions: "Write.", model: "small" })
export const asks = Program.make("asks", { agents: [judge], run: (text: string) => Program.ask(judge, text) })
export const names = Program.make("names", { agents: [clerk], run: (text: string) => Program.ask(clerk, text) })
export const lead = Agent.make({ name: "lead", instructions: "Lead.", model: "acme/rocket", agents: [judge] })
`

describe("an agent of a module", () => {
  it.live("runs with its own skills and the services of its layer, and is resumed without flags", () =>
    Effect.gen(function* () {
      const place = yield* folder
      const store = ["--store", join(place, "runs.db")]
      const script = ["--script", join(place, "script.json")]
      const agent = ["--agent", `${join(place, "agents.ts")}#support`]
      const ran = yield* kernai(["run", "--create", "Greet Ada", "-y", "--json", ...agent, ...script, ...store])
      assert.strictEqual(ran.code, 0, ran.error)
      const { runId }: { readonly runId: string } = JSON.parse(ran.out)
      const shown = yield* kernai(["runs", "show", runId, ...store])
      assert.include(shown.out, "agent     desk\n")
      assert.include(shown.out, "Good day Ada")
      const resumed = yield* kernai(["runs", "resume", runId, "-q", ...store])
      assert.strictEqual(resumed.out, "Done.\n", resumed.error)
    })
  )

  it.live("may be a program, is found by its export or name, and needs no name where it is the only one", () =>
    Effect.gen(function* () {
      const place = yield* folder
      const ask = (agent: string) => kernai(["run", "hello", "-q", "--agent", join(place, agent)])
      assert.strictEqual((yield* ask("agents.ts#echo")).out, "echo: hello\n")
      assert.strictEqual((yield* ask("one.ts")).out, "the only one\n")
      const open = yield* ask("agents.ts")
      assert.deepStrictEqual([open.code, open.out], [2, ""])
      assert.include(open.error, "names no agent: choose one of #echo, #support")
      assert.include((yield* ask("agents.ts#nobody")).error, "choose one of #echo, #support")
      assert.include((yield* ask("none.ts")).error, "the module exports none")
      assert.include((yield* ask("missing.ts")).error, "cannot be loaded")
    })
  )

  it.live("calls agents below it with the models that they name, and says whose model cannot be used", () =>
    Effect.gen(function* () {
      const place = yield* folder
      const { asked, env } = yield* ollama(() => '<block type="final">It is fair.</block>')
      const ask = (agent: string, ...flags: ReadonlyArray<string>) =>
        kernai(["run", "hello", "-q", "--agent", join(place, agent), ...flags], { env })
      const ran = yield* ask("below.ts#asks")
      assert.strictEqual(ran.out, "It is fair.\n", ran.error)
      assert.strictEqual(JSON.parse(asked.at(-1)?.body ?? "{}").model, "small")
      assert.strictEqual((yield* ask("below.ts#lead", "--model", "ollama/large")).out, "It is fair.\n")
      assert.include((yield* ask("below.ts#names")).error, "the model 'small' names no provider")
      assert.include((yield* ask("below.ts#lead")).error, "agent 'lead': unknown provider 'acme'")
    })
  )

  it.live("is run by a worker with the other agents of its module, or with those that are named", () =>
    Effect.gen(function* () {
      const place = yield* folder
      const store = ["--store", join(place, "runs.db")]
      const work = (...args: ReadonlyArray<string>) =>
        kernai(["worker", "--once", "-y", "--script", join(place, "script.json"), ...args, ...store])
      const submit = (name: string) =>
        kernai(["run", "--create", "hello", "--detach", "--agent", `${join(place, "agents.ts")}#${name}`, ...store])
      yield* submit("echo")
      yield* submit("support")
      const module = join(place, "agents.ts")
      const strange = yield* work("--agent", module, "--agent-name", "clerk")
      assert.deepStrictEqual([strange.code, strange.out], [2, ""])
      assert.include(strange.error, "has no agent of the name 'clerk'")
      assert.match((yield* work("--agent", module, "--agent-name", "echo")).out, /^run_\S+ {2}completed\n$/)
      yield* submit("echo")
      assert.match((yield* work("--agent", module)).out, /^(run_\S+ {2}completed\n){2}$/)
    })
  )

  it.live("is not replaced by an agent that only has its name, neither by a worker nor by a resume", () =>
    Effect.gen(function* () {
      const place = yield* folder
      const file = join(place, "runs.db")
      const flags = ["--script", join(place, "script.json"), "--store", file]
      const desk = Agent.make({ name: "desk", instructions: "Help.", model: "scripted" })
      // As a program of one's own does it.
      const runId = yield* Kernel.submit(desk, "hello").pipe(
        Effect.provide(
          Kernel.layerWith({
            provider: MockProvider.layer("no"),
            store: SqlRunStore.layerSqlite(file)
          })
        )
      )
      yield* kernai([
        "run",
        "--create",
        "hello",
        "--detach",
        "--agent",
        `${join(place, "agents.ts")}#support`,
        "--store",
        file
      ])
      const worked = yield* kernai(["worker", "--once", "--agent-name", "desk", ...flags])
      assert.strictEqual(worked.code, 1)
      const sentence = /the run belongs to the agent 'desk' of a program: name it by --agent/
      for (const line of worked.out.trimEnd().split("\n")) assert.match(line, sentence)
      assert.lengthOf(worked.out.trimEnd().split("\n"), 2)
      const resumed = yield* kernai(["runs", "resume", runId, ...flags])
      assert.deepStrictEqual([resumed.code, resumed.out], [2, ""])
      assert.match(resumed.error, sentence)
      const listed = yield* kernai(["runs", "list", "--json", "--store", file])
      const heads: ReadonlyArray<{ turns: number }> = listed.out
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line))
      assert.deepStrictEqual(
        heads.map(({ turns }) => turns),
        [0, 0]
      )
    })
  )
})
