/**
 * Keeps one MCP server connected.
 *
 * The connection opens with the first use, and again after the server was restarted or lost the session. A request is
 * sent again only if the first one cannot have had an effect or may be repeated: a write that was cut off fails with
 * reason `outcome_unknown`. When the scope closes, no process, socket or timer is left.
 *
 * @since 0.1.0
 */

import type * as McpSchema from "effect/ai/McpSchema"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import * as Latch from "effect/Latch"
import * as Option from "effect/Option"
import { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type * as Stream from "effect/Stream"
import { isRecord } from "../kit/json.ts"
import { McpError } from "../KernelError.ts"
import { Limits } from "../Limits.ts"
import type * as Skill from "../Skill.ts"
import * as HostTime from "./internal/hostTime.ts"
import * as Http from "./internal/http.ts"
import * as McpSession from "./internal/mcpSession.ts"
import * as Reconnect from "./internal/reconnect.ts"
import * as ResourceWatch from "./internal/resourceWatch.ts"
import { Failures } from "./internal/requestFailure.ts"
import { Listener, type Progress } from "./internal/serverProgress.ts"
import { Caller } from "./internal/serverRequests.ts"
import type { McpServer, ProtocolVersion } from "./McpConfig.ts"

export { McpError }

/**
 * The kind of a list that changed on a server.
 *
 * @category models
 * @since 0.1.0
 */
export type Change = "tools" | "resources" | "prompts"

/**
 * A server's description of itself.
 *
 * @category models
 * @since 0.1.0
 */
export interface ServerInfo {
  readonly protocolVersion: ProtocolVersion
  readonly name: string | undefined
  readonly version: string | undefined
  readonly instructions: string | undefined
  readonly capabilities: Readonly<Record<string, unknown>>
}

/**
 * A source of access tokens.
 *
 * @category models
 * @since 0.1.0
 */
export interface Credentials {
  /** Returns the token to send now, if there is one. */
  readonly accessToken: Effect.Effect<Option.Option<Redacted.Redacted<string>>>
  /**
   * Called with the `www-authenticate` header when the server asks for a sign-in or for more scopes. Returns true if
   * there is a new token.
   */
  readonly renew: (challenge: string) => Effect.Effect<boolean, McpError>
}

/**
 * Values that complete an argument, best first.
 *
 * @category models
 * @since 0.1.0
 */
export interface Completion {
  readonly values: ReadonlyArray<string>
  /** True if there are more values. */
  readonly hasMore: boolean
}

/**
 * Answers requests of a server during a call. Absent functions are not announced to the server.
 *
 * If an answer fails with `AnswerPending`, the call ends, and the server receives a cancelled answer.
 *
 * @category models
 * @since 0.1.0
 */
export interface Host {
  /** Asks a person to fill in a form, or to open an address. Missing form values are replaced by their defaults. */
  readonly elicit?: (asking: Skill.Asking) => Effect.Effect<Skill.Reply, Skill.AnswerPending>
  /** Asks a model for one reply. */
  readonly sample?: (
    sampling: Skill.Sampling
  ) => Effect.Effect<Skill.Sampled, Skill.AnswerPending | Skill.SamplingRefused>
}

/**
 * Options of one tool call.
 *
 * @category models
 * @since 0.1.0
 */
export interface CallOptions {
  /**
   * Sends a call again that was cut off. Default: true for a tool annotated as repeatable, on a server whose
   * annotations are trusted, otherwise false.
   */
  readonly repeatable?: boolean | undefined
  /** Time for the call, anew from each progress that the server reports. Default: the server's `timeout`. */
  readonly timeout?: Duration.Input | undefined
  /**
   * Maximum time of a call that reports progress. Default: the server's `progressTimeout`.
   *
   * @since 0.1.0
   */
  readonly progressTimeout?: Duration.Input | undefined
  /**
   * Checks the tool's current definition right before the call is sent. If it returns false, the call fails with reason
   * `not_found`.
   */
  readonly accepts?: ((tool: McpSchema.Tool) => boolean) | undefined
  /**
   * Answers requests of the server during this call. Default: the host of the connection, whose capabilities were
   * announced. Waiting for its answers does not count toward `timeout`.
   *
   * @since 0.1.0
   */
  readonly host?: Host | undefined
  /**
   * The id of the calling run. A server on standard streams does not say which call a request belongs to: while calls
   * of several runs are in progress, its requests are declined.
   *
   * @since 0.1.0
   */
  readonly run?: string | undefined
}

/**
 * The connection to one MCP server. Lists are cached until the server announces a change or is connected again.
 *
 * @category models
 * @since 0.1.0
 */
export interface McpConnection {
  readonly server: McpServer
  /** Connects if necessary, and returns the server's description. */
  readonly info: Effect.Effect<ServerInfo, McpError>
  readonly tools: Effect.Effect<ReadonlyArray<McpSchema.Tool>, McpError>
  /**
   * The tools that are missing from `tools`, by name, with the reason: malformed tools, and tools whose schemas refer
   * to other documents.
   *
   * @since 0.1.0
   */
  readonly skippedTools: Effect.Effect<ReadonlyMap<string, string>, McpError>
  readonly resources: Effect.Effect<ReadonlyArray<McpSchema.Resource>, McpError>
  readonly resourceTemplates: Effect.Effect<ReadonlyArray<McpSchema.ResourceTemplate>, McpError>
  readonly prompts: Effect.Effect<ReadonlyArray<McpSchema.Prompt>, McpError>
  /** Drops the cached lists, for a server that does not announce its changes. */
  readonly forget: Effect.Effect<void>
  /** Calls a tool by its name on the server. */
  readonly callTool: (
    name: string,
    input: { readonly [key: string]: unknown },
    options?: CallOptions
  ) => Effect.Effect<McpSchema.CallToolResult, McpError>
  readonly readResource: (uri: string) => Effect.Effect<McpSchema.ReadResourceResult, McpError>
  readonly getPrompt: (
    name: string,
    input?: { readonly [key: string]: string }
  ) => Effect.Effect<McpSchema.GetPromptResult, McpError>
  /**
   * Completes a partial argument of a prompt, by its name, or of a resource template.
   *
   * @since 0.1.0
   */
  readonly complete: (
    of: { readonly prompt: string } | { readonly resource: string },
    argument: { readonly name: string; readonly value: string },
    others?: { readonly [name: string]: string }
  ) => Effect.Effect<Completion, McpError>
  /**
   * Emits whenever a resource has changed, while the stream is read. Fails if the server offers no subscriptions.
   *
   * @since 0.1.0
   */
  readonly watch: (uri: string) => Stream.Stream<void, McpError>
  /**
   * Waits until lists have changed since the last call, and returns their kinds. A new connection changes all lists,
   * and so does a lost connection that cannot be reopened. For a single reader.
   */
  readonly awaitChanges: Effect.Effect<ReadonlySet<Change>>
}

/**
 * Prepares the connection to a server. Nothing is started or sent yet.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = Effect.fnUntraced(function* (
  server: McpServer,
  options?: {
    readonly credentials?: Credentials | undefined
    /** Answers requests of the server. Default: none, and no capability is announced. */
    readonly host?: Host | undefined
  }
): Effect.fn.Return<McpConnection, never, ChildProcessSpawner | HttpClient.HttpClient | Scope.Scope> {
  const limits = yield* Limits
  const spawner = yield* ChildProcessSpawner
  const client = yield* HttpClient.HttpClient
  const changes = new Changes()
  const failures = new Failures(server)
  const watched = yield* ResourceWatch.make
  // Masks every token that is sent in messages.
  const accessToken = Effect.tap(options?.credentials?.accessToken ?? Effect.succeedNone, (token) =>
    Effect.sync(() => Option.isSome(token) && failures.mask(Redacted.value(token.value)))
  )
  let current: McpSession.Session | undefined
  const open = McpSession.open(server, {
    httpClient: (server) => Http.client(client, server, accessToken),
    host: options?.host ?? {},
    onChange: (change) => changes.add(change),
    onUpdate: watched.receive,
    onErrorOutput: (last) => {
      failures.complaint = last
    },
    clean: (text) => failures.clean(text)
  }).pipe(
    Effect.provideService(ChildProcessSpawner, spawner),
    Effect.provideService(Limits, limits),
    Effect.tap((session) =>
      Effect.sync(() => {
        current = session
        changes.add("tools", "resources", "prompts")
      })
    ),
    Effect.tap((session) => watched.renew(session.send)),
    Effect.tapError(() =>
      Effect.sync(() => {
        if (current !== undefined) changes.add("tools", "resources", "prompts")
        current = undefined
      })
    )
  )
  const renew = options?.credentials?.renew ?? (() => Effect.succeed(false))
  const use = yield* Reconnect.make({ failures, open, renew })
  const { timeout } = server

  return {
    server,
    info: use("initialize", always, ({ capabilities, client: { instructions, serverInfo }, protocolVersion }) =>
      Effect.succeed({
        protocolVersion,
        name: serverInfo?.name,
        version: serverInfo?.version,
        instructions,
        capabilities
      })
    ),
    tools: use("tools/list", always, ({ lists }) => lists.tools.get),
    skippedTools: use("tools/list", always, ({ skippedTools, lists }) =>
      Effect.map(lists.tools.get, () => new Map(skippedTools))
    ),
    resources: use("resources/list", always, ({ lists }) => lists.resources.get),
    resourceTemplates: use("resources/templates/list", always, ({ lists }) => lists.resourceTemplates.get),
    prompts: use("prompts/list", always, ({ lists }) => lists.prompts.get),
    forget: Effect.suspend(() =>
      Effect.forEach(Object.values(current?.lists ?? {}), ({ forget }) => forget, { discard: true })
    ),
    callTool: callTool(server, use, failures, options?.host ?? {}),
    readResource: (uri) =>
      use("resources/read", always, ({ client, measure }) =>
        measure("resources/read", client.readResource({ uri }, { timeout }))
      ),
    getPrompt: (name, input = {}) =>
      use("prompts/get", always, ({ client, measure }) =>
        measure("prompts/get", client.getPrompt({ prompt: { name }, arguments: input }, { timeout }))
      ),
    complete: (of, argument, others) =>
      use("completion/complete", always, ({ capabilities, send }) => {
        if (capabilities["completions"] === undefined) return Effect.fail(lacks(server, "completions"))
        const ref =
          "prompt" in of ? { type: "ref/prompt", name: of.prompt } : { type: "ref/resource", uri: of.resource }
        const context = others === undefined ? {} : { context: { arguments: others } }
        return Effect.map(send("completion/complete", { ref, argument, ...context }), completionOf)
      }),
    watch: (uri) =>
      watched.watch(
        uri,
        use("resources/subscribe", always, ({ capabilities, send }) =>
          offersUpdates(capabilities)
            ? send("resources/subscribe", { uri })
            : Effect.fail(lacks(server, "subscriptions to resources"))
        ),
        use("resources/unsubscribe", always, ({ send }) => send("resources/unsubscribe", { uri }))
      ),
    awaitChanges: changes.take
  }
})

const always = () => true

const offersUpdates = ({ resources }: Readonly<Record<string, unknown>>): boolean =>
  isRecord(resources) && resources["subscribe"] === true

const lacks = ({ name }: McpServer, what: string) =>
  new McpError({ server: name, reason: "not_found", detail: `MCP server '${name}' offers no ${what}` })

const decodeCompletion = Schema.decodeUnknownOption(
  Schema.Struct({
    completion: Schema.Struct({
      values: Schema.Array(Schema.String),
      hasMore: Schema.optionalKey(Schema.NullOr(Schema.Boolean))
    })
  })
)

/** Returns the completion in a result, or an empty one if it is malformed, since it only helps a person to write. */
const completionOf = (result: unknown): Completion => {
  const { hasMore, values = [] } = Option.getOrUndefined(decodeCompletion(result))?.completion ?? {}
  return { values, hasMore: hasMore === true }
}

const callTool = (server: McpServer, use: Reconnect.Use, failures: Failures, own: Host): McpConnection["callTool"] =>
  Effect.fnUntraced(function* (name, input, options) {
    // Decided before the call is sent for the first time.
    const repeatable =
      options?.repeatable ??
      (server.trustAnnotations &&
        saysRepeatable(yield* use("tools/list", always, (session) => findTool(session, name))))
    let isSent = false
    return yield* use(
      `tools/call ${name}`,
      () => repeatable || !isSent,
      Effect.fnUntraced(function* (session) {
        isSent = false
        const tool = yield* findTool(session, name)
        if (tool === undefined) return yield* failures.notFound(`tool not found: ${name} (server=${server.name})`)
        if (options?.accepts?.(tool) === false) {
          return yield* failures.notFound(`tool '${name}' of MCP server '${server.name}' has changed`)
        }
        if (!repeatable) yield* session.probe
        isSent = true
        const limit = Duration.fromInputUnsafe(options?.timeout ?? server.timeout)
        const longest = Duration.max(
          limit,
          Duration.fromInputUnsafe(options?.progressTimeout ?? server.progressTimeout)
        )
        const time = HostTime.make()
        const caller = { host: options?.host ?? own, run: options?.run, time }
        const listener = yield* Listener
        const onProgress = (progress: Progress) =>
          Effect.andThen(time.renew, listener === undefined ? Effect.void : listener(progress))
        const call = time
          .within(session.client.callTool({ tool, arguments: input }), "tools/call", limit, longest)
          .pipe(Effect.provideService(Caller, caller), Effect.provideService(Listener, onProgress))
        return yield* session.measure("tools/call", call, name)
      })
    )
  })

/**
 * Finds a tool, and reads the list again if the cached one lacks it: the server may have added it without an
 * announcement.
 */
const findTool = Effect.fnUntraced(function* ({ lists: { tools } }: McpSession.Session, name: string) {
  const known = (yield* tools.get).find((tool) => tool.name === name)
  if (known !== undefined) return known
  yield* tools.forget
  return (yield* tools.get).find((tool) => tool.name === name)
})

const saysRepeatable = (tool: McpSchema.Tool | undefined): boolean =>
  tool?.annotations?.readOnlyHint === true || tool?.annotations?.idempotentHint === true

/** The kinds of changes that are not taken yet. */
class Changes {
  private readonly kinds = new Set<Change>()
  private readonly some = Latch.makeUnsafe(false)

  add(...kinds: ReadonlyArray<Change>): void {
    for (const kind of kinds) this.kinds.add(kind)
    this.some.openUnsafe()
  }

  /** Waits for a change, and takes all changes that arrive with it. */
  readonly take: Effect.Effect<ReadonlySet<Change>> = Effect.map(
    Effect.andThen(this.some.await, Effect.yieldNow),
    () => {
      const taken = new Set(this.kinds)
      this.kinds.clear()
      this.some.closeUnsafe()
      return taken
    }
  )
}
