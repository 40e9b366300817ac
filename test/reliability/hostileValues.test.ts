/**
 * Whatever code of a host throws, fails or dies with, its run ends typed and is not left `running`.
 */
import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit, Layer, Logger, Option, Schema, SchemaGetter, Stream } from "effect"
import {
  Agent,
  Hooks,
  Kernel,
  KernelError,
  MediaStore,
  Middleware,
  Policy,
  PromptPipeline,
  Protocol,
  ProtocolRegistry,
  Recorder,
  Redaction,
  RunStore,
  Skill,
  SkillRegistry
} from "kernai"
import { MockProvider } from "kernai/testing"
import { CurrentClaim, type RunClaim } from "../../src/internal/run/claim.ts"
import { command, final } from "../support/blocks.ts"
import { type Culprit, hostileValues, ways } from "../support/hostileValues.ts"

/** A run with one place where code of its host misbehaves. */
interface Door {
  readonly agent?: Partial<Agent.Agent<unknown, Skill.AnySkill<unknown>>>
  readonly provider?: ReturnType<typeof MockProvider.make>
  readonly skills?: ReadonlyArray<Skill.AnySkill>
  readonly protocols?: ReadonlyArray<Protocol.AnyProtocol>
  readonly options?: Kernel.RunOptions
  readonly claim?: RunClaim
  readonly around?: Layer.Layer<never>
  readonly store?: (store: RunStore.RunStoreShape) => RunStore.RunStoreShape
  readonly media?: (store: MediaStore.MediaStoreShape) => MediaStore.MediaStoreShape
}

type Bad = () => Effect.Effect<never, never>

const look = Skill.make("look", {
  description: "Looks",
  input: Schema.Struct({}),
  execute: () => Effect.succeed("seen")
})

const hook = (name: keyof Hooks.Hooks) => (bad: Bad) => ({ around: Hooks.layer({ [name]: bad } as Hooks.Hooks) })

const doors: ReadonlyArray<readonly [name: string, door: (bad: Bad) => Door]> = [
  ["a skill", (bad) => ({ skills: [Skill.dynamic("look", { description: "", inputSchema: {}, execute: bad })] })],
  [
    "the schema of a skill's input",
    (bad) => {
      const wild = Schema.String.pipe(
        Schema.decode({ decode: SchemaGetter.transformEffect(bad), encode: SchemaGetter.transform(String) })
      )
      const input = Schema.Struct({ a: wild })
      const provider = MockProvider.make(command("look", { a: "b" }), final("done"))
      return { provider, skills: [Skill.make("look", { description: "", input, execute: () => Effect.succeed("") })] }
    }
  ],
  [
    "a protocol",
    (bad) => ({
      protocols: [Protocol.make("sql", { handle: bad })],
      provider: MockProvider.make('<block type="sql">select</block>', final("done"))
    })
  ],
  [
    "what a protocol stands for",
    (bad) => ({
      protocols: [Protocol.make("sql", { handle: () => Effect.succeed("x"), skillOf: () => Effect.runSync(bad()) })],
      provider: MockProvider.make('<block type="sql">select</block>', final("done")),
      around: Policy.layer(() => Effect.succeed({ _tag: "Allowed" }))
    })
  ],
  ...(
    [
      "onRunStarted",
      "onTurnStarted",
      "onTurnPrepared",
      "onModelStarted",
      "onStreamPart",
      "onModelCompleted",
      "onToolCallsStarted",
      "onToolCallStarted",
      "onToolCallCompleted",
      "onToolCallsCompleted",
      "onTurnCompleted",
      "onRunCompleted"
    ] as const
  ).map((name) => [name, hook(name)] as const),
  ["onRunFailed", (bad) => ({ around: Hooks.layer({ onRunStarted: () => Effect.fail("no"), onRunFailed: bad }) })],
  ["onPause", (bad) => ({ around: Hooks.layer({ onRunStarted: () => Effect.succeed(Hooks.pause()), onPause: bad }) })],
  ["a policy", (bad) => ({ around: Policy.layer(bad) })],
  [
    "the visibility of a policy",
    (bad) => ({
      around: Policy.layer(
        () => Effect.succeed({ _tag: "Allowed" }),
        () => Effect.runSync(bad())
      )
    })
  ],
  ["middleware around a model", (bad) => ({ around: Middleware.layer({ callModel: () => Stream.unwrap(bad()) }) })],
  [
    "middleware behind a model",
    (bad) => ({ around: Middleware.layer({ callModel: (call, next) => Stream.tap(next(call), bad) }) })
  ],
  ["middleware around a call", (bad) => ({ around: Middleware.layer({ callTool: bad }) })],
  ["middleware made of services", (bad) => ({ around: Middleware.layerTool(bad) })],
  ["the instructions", (bad) => ({ agent: { instructions: Effect.suspend(bad) } })],
  ["a prompt pipeline", (bad) => ({ around: Layer.succeed(PromptPipeline.PromptPipeline, { build: bad }) })],
  ["a section of the prompt", (bad) => ({ around: PromptPipeline.layer({ sections: [bad] }) })],
  [
    "a count of tokens",
    (bad) => ({
      agent: { contextWindow: 1_000 },
      around: Layer.succeed(PromptPipeline.TokenCounter, () => Effect.runSync(bad()))
    })
  ],
  [
    "a provider",
    (bad) => ({
      options: { provider: { name: "wild", stream: () => Stream.unwrap(bad()) } }
    })
  ],
  [
    "a provider in the middle of its reply",
    (bad) => ({
      options: {
        provider: {
          name: "wild",
          stream: () => Stream.concat(Stream.make({ type: "text-start", id: "0" } as const), Stream.unwrap(bad()))
        }
      }
    })
  ],
  [
    "a part of a reply",
    (bad) => {
      const part = { type: "text-delta", id: "0", delta: "x" } as const
      Object.defineProperty(part, "delta", { get: () => Effect.runSync(bad()), enumerable: true })
      return { options: { provider: { name: "wild", stream: () => Stream.make(part) } } }
    }
  ],
  [
    "a skill in a task",
    (bad) => ({
      skills: [Skill.dynamic("look", { description: "", inputSchema: {}, execute: bad })],
      provider: MockProvider.make(
        '<block type="plan">{"goal":"g","tasks":[{"id":"a","input":"b"}]}</block>',
        command("look"),
        final("a"),
        final("done")
      )
    })
  ],
  [
    "a hook in a task",
    (bad) => ({
      around: Hooks.layer({
        onTurnStarted: ({ state }) => (state.depth === 0 ? Effect.void : bad())
      }),
      provider: MockProvider.make(
        '<block type="plan">{"goal":"g","tasks":[{"id":"a","input":"b"}]}</block>',
        final("done")
      )
    })
  ],
  [
    "the listing of skills",
    (bad) => {
      const listing = { get: () => Effect.runSync(bad()), enumerable: true }
      const skills = [Object.defineProperty({ ...look }, "listing", listing)]
      return { skills, provider: MockProvider.make(command("/skills", ""), final("done")) }
    }
  ],
  ["a recorder", (bad) => ({ around: Recorder.layer({ record: () => void Effect.runSync(bad()) }) })],
  ["a redactor", (bad) => ({ around: Layer.succeed(Redaction.Redaction, { text: () => Effect.runSync(bad()) }) })],
  [
    "a logger",
    (bad) => ({
      skills: [Skill.dynamic("look", { description: "", inputSchema: {}, execute: () => Effect.die("x") })],
      around: Logger.layer([Logger.make(() => Effect.runSync(bad()))])
    })
  ],
  ["the claim of a run", (bad) => ({ claim: { stop: () => Effect.runSync(bad()) } })],
  [
    "the report of a task",
    (bad) => ({
      options: { onTaskComplete: bad },
      provider: MockProvider.make(
        '<block type="plan">{"goal":"g","tasks":[{"id":"a","input":"b"}]}</block>',
        final("a"),
        final("done")
      )
    })
  ],
  ...(["append", "head"] as const).map(
    (name) =>
      [
        `a run store that cannot ${name}`,
        (bad: Bad): Door => ({ store: (store) => ({ ...store, [name]: bad }) })
      ] as const
  ),
  [
    "a media store",
    (bad) => ({
      skills: [
        Skill.dynamic("look", {
          description: "",
          inputSchema: {},
          execute: () => Effect.succeed({ type: "image", source: { type: "base64", data: "AA==" } })
        })
      ],
      media: (store) => ({
        ...store,
        put: bad,
        admit: bad,
        run: () => Effect.succeed({ ...store, put: bad, admit: bad })
      })
    })
  ],
  [
    "the schema of the answer",
    (bad) => ({
      agent: Agent.make({
        instructions: "",
        model: "m",
        output: Schema.String.pipe(
          Schema.decode({
            decode: SchemaGetter.transform(() => Effect.runSync(bad())),
            encode: SchemaGetter.transform(String)
          })
        )
      })
    })
  ]
]

const outcome = (door: Door) =>
  Effect.gen(function* () {
    const {
      around = Layer.empty,
      media = (store) => store,
      options,
      protocols = [],
      provider = MockProvider.make(command("look"), final("done")),
      skills = [look],
      store = (store) => store
    } = door
    const runs = yield* RunStore.makeMemory
    const made = Agent.make({ instructions: "", model: "m", skills: "all", maxSteps: 4 })
    const agent = { ...made, ...door.agent }
    const kernel = Kernel.layerNoProvider.pipe(
      Layer.provide([
        SkillRegistry.layer(...skills),
        ProtocolRegistry.layer(...protocols),
        Layer.effect(MediaStore.MediaStore, Effect.map(MediaStore.MediaStore, media)).pipe(
          Layer.provide(MediaStore.layerMemory)
        ),
        Layer.succeed(RunStore.RunStore, store(runs)),
        around
      ])
    )
    const run = Kernel.run(agent, "go", { runId: "run", provider, ...options }).pipe(
      Effect.provideService(CurrentClaim, door.claim)
    )
    const exit = yield* Effect.exit(Effect.provide(run, kernel))
    const stored = Option.getOrUndefined(yield* runs.load("run"))
    return { exit, status: stored?.status.type }
  }).pipe(Effect.provide(Logger.layer([])))

const isTyped = (exit: Exit.Exit<unknown, unknown>): boolean =>
  Exit.isSuccess(exit) ||
  exit.cause.reasons.every((reason) => Cause.isFailReason(reason) && KernelError.isKernelError(reason.error))

describe("a value whose properties throw", () => {
  for (const [place, door] of doors) {
    it.live(
      `ends a run with a typed error when it comes from ${place}`,
      () =>
        Effect.gen(function* () {
          const untyped: Array<string> = []
          const tried = ways.length * hostileValues.length
          for (const [way, culprit] of ways) {
            for (const [name, make] of hostileValues) {
              const { exit, status } = yield* outcome(door(badly(culprit, make)))
              const isOpen = status === "running" && !place.includes("store")
              if (!isTyped(exit) || isOpen) untyped.push(`${way} ${name}: ${exit._tag}, ${status}`)
            }
          }
          assert.deepStrictEqual(untyped, [], `${untyped.length} of ${tried}`)
        }),
      { timeout: 120_000 }
    )
  }
})

const badly =
  (culprit: Culprit, make: () => unknown): Bad =>
  () =>
    culprit(make())
