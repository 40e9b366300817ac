import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect, Fiber } from "effect"
import manifest from "../../package.json" with { type: "json" }
import { bundled } from "../../src/cli/demo/recordings.ts"
import { nodeFinding } from "../../src/cli/examine.ts"
import { codeOf } from "../../src/cli/exit.ts"
import { program } from "../../src/cli/rootCommand.ts"
import { Screen } from "../../src/cli/screen.ts"
import { serve } from "../support/loopback.ts"
import { kernai, memoryScreen } from "./support.ts"

const start = (...args: ReadonlyArray<string>) => kernai(args, { colors: true })

describe("kernai run", () => {
  const mistakes: ReadonlyArray<readonly [args: ReadonlyArray<string>, reason: string]> = [
    [["run", "Hello?"], "a question needs a model"],
    [
      ["run", "--replay", "missing"],
      "missing cannot be replayed: there is no such file; 'kernai run --list' lists recordings"
    ],
    [["run", "--replay", "../package.json"], "cannot be replayed: its path is not allowed"],
    [["run", "--replay", "package.json"], "package.json cannot be replayed: it is not a recording in a known format"],
    [["run", "--model", "openai/x", "--replay", "openai_scenario_weather", "Hi?"], "--replay brings its own question"],
    [["run", "-m", "anthropic/x", "Hi?"], "ANTHROPIC_API_KEY is not set"],
    [
      ["run", "--store", "sqlite:none.db", "--script", "none.json", "--replay", "openai_scenario_weather", "Hi?"],
      "--replay brings its own question"
    ],
    [
      ["run", "--model", "ollama/x", "--no-skills", "--skills-from", "skills", "Hi?"],
      "--no-skills and --skills-from cannot be used together"
    ],
    [["acp", "--sandbox"], "--sandbox needs --workspace"],
    [["run", "--image", "cat.png"], "--image needs --model: without a model the conversation is fixed"],
    [["run", "--system", "Be brief."], "--system needs --model"],
    [["run", "--skills-from", "skills"], "--skills-from needs --model"],
    [["run", "--no-skills"], "--no-skills needs --model"],
    [["run", "--yes", "--dialect", "blocks"], "--yes needs --model"],
    [["run", "--dialect", "tools", "--mcp", "examples/mcp.yml"], "--dialect needs --model"]
  ]
  it.live.each(mistakes)("runs nothing when called as %j, and says why", ([args, reason]) =>
    Effect.gen(function* () {
      const { code, error, out, progress } = yield* start(...args)
      assert.strictEqual(code, 2)
      assert.match(error, /^kernai: .*\n$/)
      assert.include(error, reason)
      assert.strictEqual(out + progress, "")
    })
  )

  it.live("lists the recorded conversations, as text and as JSON", () =>
    Effect.gen(function* () {
      const people = yield* start("run", "--list")
      assert.deepStrictEqual(
        people.out
          .trimEnd()
          .split("\n")
          .map((line) => line.split(" ", 1)[0]),
        bundled.map(({ name }) => name)
      )
      const machines = yield* start("run", "--list", "--json")
      assert.deepStrictEqual(JSON.parse(machines.out), bundled)
    })
  )

  it.live("plays the recording that is named, in colour unless --no-color is given", () =>
    Effect.gen(function* () {
      const colored = yield* start("run", "--replay", "ollama_scenario_weather")
      assert.strictEqual(colored.code, 0)
      assert.include(colored.progress, "\u001b[1mturn 1\u001b[22m\n")
      const plain = yield* start("run", "--no-color", "--replay", "ollama_scenario_weather")
      assert.include(plain.progress, "\nturn 1\n")
      assert.notInclude(plain.progress + plain.out, "\u001b")
    })
  )

  it.live("plays a recording that is a file", () =>
    Effect.gen(function* () {
      const { code, out } = yield* start(
        "run",
        "-q",
        "--root",
        "test",
        "--replay",
        "fixtures/cassettes/openai_final_block.json"
      )
      assert.strictEqual(code, 0)
      assert.match(out, /4\.?\n$/)
    })
  )

  it.live("reports an unknown flag with its control characters escaped (S-19)", () =>
    Effect.gen(function* () {
      const { code, error } = yield* start("run", "--x\u001b[2J")
      assert.strictEqual(code, 2)
      assert.include(error, "\\u{1b}[2J")
      assert.notInclude(error, "\u001b")
    })
  )
})

describe("kernai", () => {
  /** Returns the help of a command and of all commands below it. */
  const helpBelow = (command: ReadonlyArray<string>): Effect.Effect<ReadonlyArray<readonly [string, string]>> =>
    Effect.gen(function* () {
      const { code, out } = yield* kernai([...command, "--help"])
      assert.strictEqual(code, 0)
      const [, list = ""] = out.split("\nSUBCOMMANDS\n")
      const names = list.split("\n").flatMap((line) => /^ {2}([a-z-]+) {2}/.exec(line)?.[1] ?? [])
      const below = yield* Effect.forEach(names, (name) => helpBelow([...command, name]))
      return [[command.join(" "), out] as const, ...below.flat()]
    })

  it.live("has a help for every command, in lines of at most 80 columns", () =>
    Effect.gen(function* () {
      const helps = yield* helpBelow([])
      assert.isAtLeast(helps.length, 27)
      for (const [command, out] of helps) {
        assert.include(out, `USAGE\n  ${`kernai ${command}`.trimEnd()}`)
        for (const line of out.split("\n")) assert.isAtMost(line.length, 80, line)
        const [, examples = ""] = out.split("\nEXAMPLES\n")
        for (const line of examples.split("\n")) assert.match(line, /^(| {2}# .*| {2}kernai .*)$/, "can be pasted")
      }
    })
  )

  it.live("names the same thing by the same flag in every command", () =>
    Effect.gen(function* () {
      const helps = new Map(yield* helpBelow([]))
      const having = (flag: string) => [...helps.keys()].filter((command) => helps.get(command)?.includes(`  ${flag}`))
      const stored = [...helps.keys()].filter((command) => /^(runs|schedules) /.test(command))
      const scenarios = ["scenario run", "scenario matrix"]
      assert.deepStrictEqual(having("--store <store>"), [
        "run",
        "chat",
        "acp",
        ...stored,
        "ops",
        ...["list", "drain", "undrain"].map((name) => `processes ${name}`),
        "dev",
        "studio",
        "worker",
        ...scenarios
      ])
      const agents = ["run", "chat", "runs resume", "runs replay", "studio", "worker", "mcp serve"]
      for (const flag of [
        "--agent, -a <file>",
        "--model, -m <model>",
        "--skills-from <folder>",
        "--dialect <dialect>"
      ]) {
        assert.includeMembers(having(flag), agents)
      }
      const servers = ["list", "call", "doctor", "sign-in", "approve"].map((name) => `mcp ${name}`)
      assert.includeMembers(having("--mcp <file>"), [...agents, ...servers])
      // Groups of commands have no flags, a chat is a conversation, an editor speaks its own protocol, an export is JSON or a page, and SQL is SQL.
      const silent = [
        "",
        "acp",
        "runs",
        "schedules",
        "processes",
        "scenario",
        "mcp",
        "store",
        "chat",
        "runs export",
        "store sql"
      ]
      assert.deepStrictEqual(
        having("--json"),
        [...helps.keys()].filter((command) => !silent.includes(command))
      )
    })
  )

  it.live("reports a bug with its stack, and ends with 1", () =>
    Effect.gen(function* () {
      const { error, layer } = memoryScreen()
      const out = () => {
        throw new TypeError("not\u001b[2J expected")
      }
      const exit = yield* Screen.use((screen) =>
        Effect.exit(Effect.provideService(program(["run", "--list"]), Screen, { ...screen, out }))
      ).pipe(Effect.provide(layer))
      assert.strictEqual(codeOf(exit), 1)
      assert.match(error(), /^kernai: TypeError: not\\u\{1b\}\[2J expected\n +at .*root\.test\.ts/)
    })
  )
})

describe("kernai with --json", () => {
  const mistakes: ReadonlyArray<readonly [args: ReadonlyArray<string>, reason: string]> = [
    [["run", "--model", "anthropic/x", "--json", "Hi?"], "ANTHROPIC_API_KEY is not set"],
    [["run", "--json", "--events"], "--json and --events cannot be used together"],
    [["run", "--json", "--max-steps", "0"], '--max-steps: "0". Expected: a number from 1'],
    [["run", "--json=true", "Hi?"], "a question needs a model"],
    [["run", "--json", "--nonsense"], "Unrecognized flag: --nonsense"],
    [["runs", "show", "none", "--json"], "Missing required flag: --store"],
    [["scenario", "run", "--json", "nowhere"], "nowhere cannot be read (NotFound)"]
  ]
  it.live.each(mistakes)("prints an object that says why nothing was run: %j", ([args, reason]) =>
    Effect.gen(function* () {
      const { code, error, out } = yield* start(...args)
      assert.strictEqual(code, 2)
      const printed = JSON.parse(out)
      assert.isFalse(printed.ok)
      assert.include(printed.error.message, reason)
      assert.include(error, reason)
    })
  )

  it.effect("prints only the help that was asked for", () =>
    Effect.gen(function* () {
      const { code, error, out } = yield* start("run", "--help", "--json")
      assert.deepStrictEqual([code, error], [0, ""])
      assert.match(out, /^DESCRIPTION\n/)
    })
  )

  it.live("prints an object with the interruption", () =>
    Effect.gen(function* () {
      const asked = Promise.withResolvers<void>()
      const server = yield* serve(() => asked.resolve())
      const env = { OLLAMA_BASE_URL: server.url() }
      const screen = memoryScreen()
      const run = yield* program(["run", "-m", "ollama/x", "--json", "Hi?"]).pipe(
        Effect.provide(screen.layer),
        Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromEnv({ env })),
        Effect.forkChild
      )
      yield* Effect.promise(() => asked.promise)
      yield* Fiber.interrupt(run)
      assert.strictEqual(codeOf(yield* Fiber.await(run)), 130)
      assert.deepStrictEqual(JSON.parse(screen.out()), { ok: false, error: { message: "interrupted" } })
      assert.strictEqual(screen.error(), "kernai: interrupted\n")
    })
  )

  it.live("prints the failure of a run once", () =>
    Effect.gen(function* () {
      const { code, out } = yield* start("run", "--json", "--max-steps", "1")
      assert.strictEqual(code, 1)
      assert.isFalse(JSON.parse(out).ok)
    })
  )
})

describe("kernai doctor", () => {
  it("accepts every Node.js that the package accepts, and no older one", () => {
    const [major = 0, minor = 0] = manifest.engines.node.replace(">=", "").split(".").map(Number)
    const versions = [`${major}.${minor}.0`, `${major}.${minor + 1}.0`, `${major + 1}.0.0`]
    const older = [`${major}.${minor - 1}.9`, `${major - 1}.99.0`]
    assert.deepStrictEqual(
      [...versions, ...older].map((version) => nodeFinding(version).state),
      ["ok", "ok", "ok", "wrong", "wrong"]
    )
    assert.strictEqual(nodeFinding("1.0.0").about, `kernai needs ${major}.${minor} or later`)
  })

  it.live("reports a provider as missing until all of its variables are set", () =>
    Effect.gen(function* () {
      const azure = (env: { readonly [name: string]: string }) =>
        Effect.map(kernai(["doctor"], { env }), ({ out }) => /^(\w+) +azure +(.+)$/m.exec(out)?.slice(1))
      assert.deepStrictEqual(yield* azure({ AZURE_API_KEY: "k" }), [
        "missing",
        "AZURE_RESOURCE_NAME or AZURE_BASE_URL is not set"
      ])
      assert.deepStrictEqual(yield* azure({ AZURE_RESOURCE_NAME: "team" }), ["missing", "AZURE_API_KEY is not set"])
      for (const address of ["AZURE_RESOURCE_NAME", "AZURE_BASE_URL"]) {
        assert.deepStrictEqual(yield* azure({ AZURE_API_KEY: "k", [address]: "team" }), [
          "ok",
          "AZURE_API_KEY is set, AZURE_RESOURCE_NAME or AZURE_BASE_URL is set"
        ])
      }
    })
  )

  it.live("looks for the keys of compatible hosts, and lists all names of a variable", () =>
    Effect.gen(function* () {
      const { code, out } = yield* kernai(["doctor"], { env: { GROQ_API_KEY: "k", MISTRAL_API_KEY: " " } })
      assert.strictEqual(code, 0)
      assert.match(out, /^ok +groq +GROQ_API_KEY is set$/m)
      assert.match(out, /^missing +mistral +MISTRAL_API_KEY is not set$/m)
      assert.match(out, /^missing +google +GEMINI_API_KEY or \w+ or \w+ is not set$/m)
    })
  )
})
