/**
 * Agents that run programs which a model writes: one program calls ten skills, instead of ten turns of the model.
 *
 * Each call in a program is a call of its run, with policies, questions to a person, hooks, budgets, events and a record.
 * A program stops at any call and continues days later, in another process: it runs again from its beginning and gets
 * the recorded results. It sees its functions and nothing else: no network, files, timers or process, and its `Date` and
 * `Math.random` are fixed by the run.
 *
 * @since 0.1.0
 */

import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Random from "effect/Random"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { Agent, AgentTypes } from "../Agent.ts"
import {
  type Code,
  type CodeCall,
  CodeFailed,
  CodeInterpreter,
  type CodeLimits,
  type CodeResult
} from "../CodeInterpreter.ts"
import * as Bounds from "../kit/bounds.ts"
import { isRecord, jsonObject, parseJson, textOf } from "../kit/json.ts"
import * as Snapshot from "../kit/snapshot.ts"
import { unfenced, utf8Length } from "../kit/text.ts"
import * as Program from "../Program.ts"
import { Outside } from "../Simulation.ts"
import type { AnySkill } from "../Skill.ts"
import { type CodeFunction, found, functionsOf, listing } from "./internal/functions.ts"
import { Threads } from "./internal/quickJsThreads.ts"

/**
 * The answer of an agent that runs programs.
 *
 * @category models
 * @since 0.1.0
 */
export const Answer = Schema.Struct({
  /** What the program returned. */
  result: Schema.Json,
  /** What it logged. */
  log: Schema.optionalKey(Schema.String)
})

/**
 * The options of an agent that runs programs.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options<S, Members> extends Pick<
  Program.Options<typeof Schema.String, typeof Schema.String, S, Members, never>,
  "agents" | "budget" | "skills" | "spawn"
> {
  /** Default: `code`. */
  readonly name?: string | undefined
  /** Stands before the list of functions. Default: what it does, and how a program is written. */
  readonly description?: string | undefined
  /** The bounds of a program. */
  readonly limits?: Partial<CodeLimits> | undefined
  /**
   * Tokens of the list of functions in its description. Programs find the others by `search("words")`. Default: 2,000.
   */
  readonly listedTokens?: number | undefined
}

/**
 * Creates an agent that runs programs over skills and agents. List it in the `agents` of an agent with a model.
 *
 * A model that speaks blocks writes the program as the content of the block, and one with native tools as
 * `{ code }`. A program that fails is a result for the model, with its line and the calls that had run.
 *
 * @example
 * const code = Code.agent({ skills: [customers, orders, refund] })
 * const desk = Agent.make({ name: "desk", instructions: "Answer from the data.", agents: [code] })
 *
 * @category constructors
 * @since 0.1.0
 */
export const agent = <
  const S extends ReadonlyArray<AnySkill<unknown>> = readonly [],
  const Members extends Agent<unknown, AnySkill<unknown>, unknown, unknown> = never
>(
  options: Options<S, Members>
): Agent<typeof Answer.Type, AgentTypes.Skills<S, Members>, CodeInterpreter | AgentTypes.Services<S, Members>> => {
  const { description, limits, listedTokens = 2_000, name = "code", ...rest } = options
  const functions = functionsOf(options.skills ?? [], options.agents ?? [])
  const bounds = { ...defaultLimits, ...limits }
  return Program.make(name, {
    ...rest,
    description: descriptionOf(description ?? usual, functions, listedTokens),
    input: Schema.Struct({ code: Schema.String }),
    output: Answer,
    maxSteps: bounds.calls + 1,
    run: ({ code }) => execute(unfenced(code), functions, bounds)
  })
}

/**
 * Runs programs in QuickJS, each in a thread of its own that ends with it. The packages `quickjs-emscripten-core` and
 * `@jitl/quickjs-ng-wasmfile-release-sync` must be installed beside kernai.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerQuickJs = (options?: {
  /** Programs that run at once; others wait. As many more keep their threads while they wait for calls. Default: 8. */
  readonly threads?: number | undefined
}): Layer.Layer<CodeInterpreter> =>
  Layer.effect(
    CodeInterpreter,
    Effect.map(
      Effect.acquireRelease(
        Effect.sync(() => new Threads(Math.max(1, options?.threads ?? 8))),
        ({ close }) => Effect.flatMap(Outside, (outside) => outside(close))
      ),
      ({ open }) => ({ open })
    )
  )

/**
 * The default bounds of a program.
 *
 * @category models
 * @since 0.1.0
 */
export const defaultLimits: CodeLimits = {
  sourceBytes: 64 * 1024,
  memoryBytes: 64 * 1024 * 1024,
  stackBytes: 128 * 1024,
  cpuTime: Duration.seconds(5),
  calls: 256,
  outputLength: 1024 * 1024,
  logLength: 8 * 1024
}

type Functions = ReturnType<typeof functionsOf>

const usual =
  "Runs a program that you write and returns what it returns, as JSON. Write the body of an async function in TypeScript, without imports: await the functions below, filter and combine in code, use Promise.all for calls that do not need each other, and end with `return`. A function that fails throws."

const descriptionOf = (first: string, { all, finder }: Functions, tokens: number): string => {
  const { left, text } = listing(all.values(), tokens)
  const rest = left === 0 ? [] : [`${left} more functions: \`return await ${finder}("words")\` shows those that fit.`]
  return [first, text, ...rest].filter((part) => part !== "").join("\n")
}

// ---------------------------------------------------------------- execution

/** Runs a program: its steps in the interpreter, and its calls as those of the run. */
const execute = (source: string, functions: Functions, limits: CodeLimits) => {
  const made = new Map<string, number>()
  const failed = ({ _tag, ...facts }: CodeFailed) =>
    new CodeFailed({
      ...facts,
      calls: Array.from(made, ([name, count]) => (count === 1 ? name : `${name} ×${count}`))
    })
  return Effect.mapError(steps(source, functions, limits, made), failed)
}

const steps = Effect.fnUntraced(function* (
  source: string,
  functions: Functions,
  limits: CodeLimits,
  made: Map<string, number>
) {
  if (utf8Length(source) > limits.sourceBytes) {
    return yield* new CodeFailed({ reason: "source", detail: `The program is longer than ${limits.sourceBytes} bytes` })
  }
  const { open } = yield* CodeInterpreter
  const program: Code = {
    source,
    functions: [...functions.all.keys(), functions.finder],
    now: yield* Clock.currentTimeMillis,
    seed: yield* Random.nextIntBetween(0, 2 ** 31 - 1),
    limits
  }
  const execution = yield* Program.compute(open(program))
  let results: ReadonlyArray<CodeResult> = []
  for (;;) {
    const step = yield* Program.compute(execution.next(results))
    if (step._tag === "Returned") return { result: step.value, ...(step.log === "" ? {} : { log: step.log }) }
    results = yield* Effect.forEach(step.calls, (call) => resultOf(call, functions), { concurrency: "unbounded" })
    for (const { name } of step.calls) made.set(name, (made.get(name) ?? 0) + 1)
  }
}, Effect.scoped)

const resultOf = (made: CodeCall, { all, finder }: Functions) => {
  const { input, name } = made
  if (name === finder) return Effect.succeed<CodeResult>({ _tag: "Value", value: found(all.values(), String(input)) })
  const one = all.get(name)
  if (one === undefined) return Effect.succeed(failure("ReferenceError", `${name} is not a function of this program`))
  return valueOf(one, made).pipe(
    Effect.map((value) =>
      Result.match(Snapshot.take(value), {
        onSuccess: (value): CodeResult => ({ _tag: "Value", value }),
        onFailure: ({ reason }) => failure("OutputInvalid", `its result ${reason}`)
      })
    ),
    Effect.catch(({ detail, error }) =>
      Effect.succeed(failure(error, error === "InvalidArguments" ? `${detail}\n${one.declaration}` : detail))
    )
  )
}

const failure = (name: string, message: string): CodeResult => ({ _tag: "Error", name, message })

/** Makes a call of the program's run. The answer of an agent with an output is JSON as text. */
const valueOf = ({ target }: CodeFunction, { input, line }: CodeCall) => {
  const { name } = target._tag === "Skill" ? target.skill : target.agent
  const given = isRecord(input)
    ? jsonObject(input)
    : target._tag === "Skill"
      ? target.skill.parameters(textOf(input))
      : { input }
  const asked = { label: name, name, input: given, ...(line === undefined ? {} : { line }) }
  return Program.Program.use(({ call }) =>
    Effect.map(call(asked), ({ value }) =>
      target._tag === "Agent" && target.agent.typed && typeof value === "string"
        ? Result.getOrElse(parseJson(value, Bounds.jsonDepth), () => value)
        : value
    )
  )
}
