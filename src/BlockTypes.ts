/**
 * Content types defined by the application.
 *
 * A registered type decodes to `Custom`: the wire form verbatim, and the value its schema decoded. Data stored before
 * the registration is read as the new type, and data stored under it can be read without it.
 *
 * These contents are for the application. A model sees `[UnknownBlock: type]` in their place, so a skill adds what the
 * model should know as text.
 *
 * @since 0.1.0
 */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Equal from "effect/Equal"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaAST from "effect/SchemaAST"
import type * as Scope from "effect/Scope"
import type { Content, Custom, Json } from "./Content.ts"
import * as Codec from "./internal/words/contentCodec.ts"
import * as Fault from "./kit/fault.ts"
import { isJsonObject } from "./kit/json.ts"
import * as Snapshot from "./kit/snapshot.ts"
import { BlockTypeConflict, BlockValidationError, DefinitionInvalid } from "./KernelError.ts"

export { BlockTypeConflict }

/**
 * The schema of a content type: an object with a literal `type`.
 *
 * @category models
 * @since 0.1.0
 */
export type TypeSchema<A = unknown> = Schema.ConstraintCodec<A, { readonly type: string }>

/**
 * The content types registered beside the built-in ones.
 *
 * @category services
 * @since 0.1.0
 */
export class BlockTypes extends Context.Service<
  BlockTypes,
  {
    /**
     * Registers a type until the scope closes. Registering the same schema again changes nothing; a different schema
     * for the type fails.
     */
    readonly register: (schema: TypeSchema) => Effect.Effect<void, BlockTypeConflict | DefinitionInvalid, Scope.Scope>
    /** Decodes a wire form with the types registered at this moment. */
    readonly decode: (input: unknown) => Effect.Effect<Content, BlockValidationError>
    /** The codec of contents, with the types registered at the moment it is used. */
    readonly content: Schema.Codec<Content, Json>
  }
>()("kernai/BlockTypes") {}

/**
 * Creates a content of a custom type. Fails if the schema cannot encode the value.
 *
 * @category constructors
 * @since 0.1.0
 */
export const custom = <A>(schema: TypeSchema<A>, value: A): Result.Result<Custom, BlockValidationError> =>
  Schema.encodeUnknownResult(schema)(value).pipe(
    Result.mapError(Fault.ofSchema),
    Result.flatMap((wire) => Snapshot.take(wire)),
    Result.flatMap((raw) =>
      isJsonObject(raw)
        ? Result.succeed(Object.freeze<Custom>({ type: "custom", wireType: String(raw["type"]), raw, value }))
        : Result.fail({ path: "", reason: "expected an object" })
    ),
    Result.mapError((fault) => new BlockValidationError(fault))
  )

/**
 * Registers types until the layer is released.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (
  ...schemas: ReadonlyArray<TypeSchema>
): Layer.Layer<BlockTypes, BlockTypeConflict | DefinitionInvalid> =>
  Layer.effect(
    BlockTypes,
    Effect.gen(function* () {
      const types = make()
      yield* Effect.forEach(schemas, types.register, { discard: true })
      return types
    })
  )

interface Registration {
  readonly schema: TypeSchema
  readonly decode: ReturnType<Codec.Lookup>
  holders: number
}

const make = (): BlockTypes["Service"] => {
  const registrations = new Map<string, Registration>()
  const lookup: Codec.Lookup = (type) => registrations.get(type)?.decode

  const hold = Effect.fnUntraced(function* (schema: TypeSchema) {
    const type = typeOf(schema)
    if (type === undefined) {
      return yield* new DefinitionInvalid({ name: "content type", reason: "its schema has no literal `type`" })
    }
    const known = registrations.get(type)
    if (Codec.shapeOf(type) !== undefined || (known !== undefined && !isSame(known.schema, schema))) {
      return yield* new BlockTypeConflict({ type })
    }
    if (known === undefined) registrations.set(type, { schema, decode: decoder(schema), holders: 1 })
    else known.holders += 1
    return type
  })

  const release = (type: string) => {
    const registration = registrations.get(type)
    if (registration !== undefined && --registration.holders === 0) registrations.delete(type)
  }

  return BlockTypes.of({
    register: (schema) =>
      Effect.asVoid(Effect.acquireRelease(hold(schema), (type) => Effect.sync(() => release(type)))),
    decode: (input) => Effect.suspend(() => Effect.fromResult(Codec.decode(input, lookup))),
    content: Codec.schema(lookup)
  })
}

const decoder = (schema: TypeSchema): Registration["decode"] => {
  const decode = Schema.decodeUnknownResult(schema)
  return (raw) => Result.mapError(decode(raw), Fault.ofSchema)
}

// A schema built again from the same parts counts as the same.
const isSame = (one: TypeSchema, other: TypeSchema): boolean => one === other || Equal.equals(one.ast, other.ast)

const typeOf = (schema: TypeSchema): string | undefined => {
  const ast = SchemaAST.toEncoded(schema.ast)
  if (!SchemaAST.isObjects(ast)) return undefined
  const type = ast.propertySignatures.find((property) => property.name === "type")?.type
  return type !== undefined && SchemaAST.isLiteral(type) && typeof type.literal === "string" ? type.literal : undefined
}
