/**
 * Routing addresses: `AgentId` for receivers, `TopicId` for subjects.
 *
 * An address prints as `[namespace/]type/key`, without the namespace exactly when it is `default`. Parsing the printed
 * form gives an equal address; nothing is trimmed or normalized.
 *
 * @since 0.1.0
 */

import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaGetter from "effect/SchemaGetter"
import * as SchemaIssue from "effect/SchemaIssue"
import { randomId } from "./kit/randomId.ts"
import { InvalidAddress } from "./KernelError.ts"

export { InvalidAddress }

/**
 * One part of an address: 1 to 255 characters without `/`, white space and control characters.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Segment = Schema.String.check(
  Schema.isPattern(/^[^/\s\p{Cc}]{1,255}$/u, { expected: "an address segment" })
)

/**
 * The address of an agent. It outlives the process the agent runs in.
 *
 * @category models
 * @since 0.1.0
 */
export class AgentId extends Schema.Class<AgentId>("kernai/AgentId")({
  type: Segment,
  key: Segment,
  namespace: Segment
}) {
  /** Creates an address from its parts. The namespace defaults to `default`. */
  static readonly of = (parts: AgentIdParts): Result.Result<AgentId, InvalidAddress> =>
    checked(parts.namespace, parts.type, parts.key, (namespace, type, key) => new AgentId({ namespace, type, key }))

  /** Parses `[namespace/]type/key`. */
  static readonly parse = (input: string): Result.Result<AgentId, InvalidAddress> =>
    split(input, (namespace, type, key) => new AgentId({ namespace, type, key }))

  /** Creates a new address of a type, with a key drawn from `Random`. */
  static readonly generate = (type: string, namespace?: string): Effect.Effect<AgentId, InvalidAddress> =>
    Effect.flatMap(Random.Random, (random) =>
      Effect.fromResult(AgentId.of({ type, key: randomId(random, 4), namespace }))
    )

  /** Prints the address. */
  override toString(): string {
    return print(this.namespace, this.type, this.key)
  }
}

/**
 * The address of a topic that is published and subscribed to. `source` is its subject.
 *
 * @category models
 * @since 0.1.0
 */
export class TopicId extends Schema.Class<TopicId>("kernai/TopicId")({
  type: Segment,
  source: Segment,
  namespace: Segment
}) {
  /** Creates an address from its parts. Source and namespace default to `default`. */
  static readonly of = (parts: TopicIdParts): Result.Result<TopicId, InvalidAddress> =>
    checked(
      parts.namespace,
      parts.type,
      parts.source ?? unnamed,
      (namespace, type, source) => new TopicId({ namespace, type, source })
    )

  /** Parses `[namespace/]type/source`. The source is required. */
  static readonly parse = (input: string): Result.Result<TopicId, InvalidAddress> =>
    split(input, (namespace, type, source) => new TopicId({ namespace, type, source }))

  /** The topic of all events of all runs in a tree. */
  static readonly progress = (rootRunId: string, namespace?: string): Result.Result<TopicId, InvalidAddress> =>
    TopicId.of({ type: "agent.progress", source: rootRunId, namespace })

  /** The topic of the stream parts of one agent. */
  static readonly stream = (agent: AgentId): TopicId =>
    new TopicId({ type: "agent.stream", source: agent.key, namespace: agent.namespace })

  /** Prints the address. */
  override toString(): string {
    return print(this.namespace, this.type, this.source)
  }
}

/**
 * The parts of an agent's address.
 *
 * @category models
 * @since 0.1.0
 */
export interface AgentIdParts {
  readonly type: string
  readonly key: string
  readonly namespace?: string | undefined
}

/**
 * The parts of a topic's address.
 *
 * @category models
 * @since 0.1.0
 */
export interface TopicIdParts {
  readonly type: string
  readonly source?: string | undefined
  readonly namespace?: string | undefined
}

/**
 * The codec between an agent's address and its text.
 *
 * @category schemas
 * @since 0.1.0
 */
export const AgentIdFromString: Schema.Codec<AgentId, string> = fromString(AgentId)

/**
 * The codec between a topic's address and its text.
 *
 * @category schemas
 * @since 0.1.0
 */
export const TopicIdFromString: Schema.Codec<TopicId, string> = fromString(TopicId)

const unnamed = "default"

const isSegment = Schema.is(Segment)

const print = (namespace: string, type: string, key: string): string =>
  namespace === unnamed ? `${type}/${key}` : `${namespace}/${type}/${key}`

type Make<A> = (namespace: string, type: string, key: string) => A

function checked<A>(namespace = unnamed, type: string, key: string, make: Make<A>): Result.Result<A, InvalidAddress> {
  return [namespace, type, key].every(isSegment)
    ? Result.succeed(make(namespace, type, key))
    : invalid(print(namespace, type, key))
}

// No address is longer than three segments, so the rest of a hostile input is not repeated.
function invalid(input: string): Result.Result<never, InvalidAddress> {
  return Result.fail(new InvalidAddress({ input: input.slice(0, 800) }))
}

function split<A>(input: string, make: Make<A>): Result.Result<A, InvalidAddress> {
  const parts = input.split("/", 4)
  const [namespace, type, key] = parts.length === 2 ? [unnamed, ...parts] : parts
  return parts.length > 3 || type === undefined || key === undefined
    ? invalid(input)
    : checked(namespace, type, key, make)
}

function fromString<A extends { readonly toString: () => string }, E>(
  schema: Schema.Codec<A, E> & { readonly parse: (input: string) => Result.Result<A, InvalidAddress> }
): Schema.Codec<A, string> {
  return Schema.String.pipe(
    Schema.decodeTo(Schema.toType(schema), {
      decode: SchemaGetter.transformEffect((input: string) =>
        Effect.fromResult(
          Result.mapError(schema.parse(input), (error) => new SchemaIssue.InvalidValue({ message: error.message }))
        )
      ),
      encode: SchemaGetter.transform((address: A) => address.toString())
    })
  )
}
