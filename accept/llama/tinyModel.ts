/**
 * A tiny language model with random weights, as a GGUF file of llama.cpp: the llama architecture with two layers of 32
 * numbers. The same seed gives the same bytes.
 *
 * Its tokens are the bytes, the printable letters, and the words that end something. It prefers those words, so that most
 * replies end; everything else is chance.
 */
import { writeFileSync } from "node:fs"

const size = 32
const layers = 2
const heads = 4
const inner = 64
/** The longest prompt and reply, in tokens. */
export const contextLength = 16_384

// ---------------------------------------------------------------- tokens

interface Token {
  readonly text: string
  /** As llama.cpp numbers them: 1 normal, 2 unknown, 3 control, 6 a byte. */
  readonly type: 1 | 2 | 3 | 6
  /** How much the model prefers it, added to its logit. */
  readonly preference: number
}

const normal = (text: string, preference = 0): Token => ({ text: text.replaceAll(" ", "▁"), type: 1, preference })

/** Words longer than a letter, and how much they are preferred. */
const words: ReadonlyArray<readonly [text: string, preference: number]> = [
  ["</block>", 5],
  ["</", -4],
  ["block", 0],
  ['<block type="', 0],
  ["command", 1],
  ["final", 0],
  ["plan", 0],
  ['"}', 4],
  ['",', 2],
  ["]}", 3],
  ["true", 1],
  ["null", 1],
  ["\\u", 0]
]

/** Letters of one to four bytes that are read, counted and escaped in different ways. */
const foreign: ReadonlyArray<string> = Array.from("\u007f\u00a0é߷\u2028☃日\ufeff\ufffd😀\u{10ffff}")

/** Letters that end or shorten something. */
const favourites = new Map([
  ['"', 3],
  ["}", 4],
  ["]", 4]
])

const tokens: ReadonlyArray<Token> = [
  { text: "<unk>", type: 2, preference: -20 },
  { text: "<s>", type: 3, preference: -20 },
  { text: "</s>", type: 3, preference: 4 },
  ...Array.from({ length: 256 }, (_, code): Token => ({
    text: `<0x${code.toString(16).toUpperCase().padStart(2, "0")}>`,
    type: 6,
    // Letters have tokens of their own, and bytes by chance are no text: only control characters are left.
    preference: code < 0x20 ? -3 : -30
  })),
  ...Array.from({ length: 95 }, (_, code) => {
    const letter = String.fromCharCode(0x20 + code)
    return normal(letter, favourites.get(letter) ?? 0)
  }),
  ...foreign.map((letter) => normal(letter)),
  ...words.map(([text, preference]) => normal(text, preference))
]

// ---------------------------------------------------------------- weights

/** Draws numbers around 0 with a deviation of 1, the same ones for a seed. */
const gaussian = (seed: number): (() => number) => {
  let state = seed >>> 0
  const uniform = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return (((mixed ^ (mixed >>> 14)) >>> 0) + 0.5) / 2 ** 32
  }
  return () => Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform())
}

interface Tensor {
  readonly name: string
  readonly shape: ReadonlyArray<number>
  readonly values: Float32Array
}

/** The first number of each embedding is this, so that a preference can be a weight of the last layer. */
const constant = 8
/** What the constant is about after the last norm. */
const normed = constant / Math.sqrt((constant ** 2 + 2 * size) / size)

const tensors = (seed: number): ReadonlyArray<Tensor> => {
  const draw = gaussian(seed)
  const matrix = (name: string, columns: number, rows: number, scale: number): Tensor => ({
    name: `${name}.weight`,
    shape: [columns, rows],
    values: Float32Array.from({ length: columns * rows }, () => draw() * scale)
  })
  const ones = (name: string): Tensor => ({
    name: `${name}.weight`,
    shape: [size],
    values: new Float32Array(size).fill(1)
  })
  const embedding = matrix("token_embd", size, tokens.length, 1)
  const output = matrix("output", size, tokens.length, 0.25)
  for (const [index, { preference }] of tokens.entries()) {
    embedding.values[index * size] = constant
    output.values[index * size] = preference / normed
  }
  const layer = (index: number) => [
    ones(`blk.${index}.attn_norm`),
    ...["attn_q", "attn_k", "attn_v", "attn_output"].map((part) => matrix(`blk.${index}.${part}`, size, size, 0.2)),
    ones(`blk.${index}.ffn_norm`),
    matrix(`blk.${index}.ffn_gate`, size, inner, 0.2),
    matrix(`blk.${index}.ffn_up`, size, inner, 0.2),
    matrix(`blk.${index}.ffn_down`, inner, size, 0.2)
  ]
  return [embedding, ...Array.from({ length: layers }, (_, index) => layer(index)).flat(), ones("output_norm"), output]
}

// ---------------------------------------------------------------- the file

const alignment = 32

/** Writes numbers and texts as GGUF does: little-endian, texts with their length. */
class Writer {
  readonly #parts: Array<Buffer> = []

  bytes(part: Buffer): void {
    this.#parts.push(part)
  }

  u32(value: number): void {
    const part = Buffer.alloc(4)
    part.writeUInt32LE(value)
    this.#parts.push(part)
  }

  u64(value: number): void {
    const part = Buffer.alloc(8)
    part.writeBigUInt64LE(BigInt(value))
    this.#parts.push(part)
  }

  f32(value: number): void {
    const part = Buffer.alloc(4)
    part.writeFloatLE(value)
    this.#parts.push(part)
  }

  text(value: string): void {
    const part = Buffer.from(value)
    this.u64(part.length)
    this.#parts.push(part)
  }

  pad(): void {
    const length = this.#parts.reduce((sum, part) => sum + part.length, 0)
    this.#parts.push(Buffer.alloc((alignment - (length % alignment)) % alignment))
  }

  whole(): Buffer {
    return Buffer.concat(this.#parts)
  }
}

/** A value of the header. The types are those of GGUF: 4 a count, 5 an integer, 6 a number, 7 a flag, 8 a text, 9 a list. */
type Field = (writer: Writer) => void

const count =
  (value: number): Field =>
  (writer) => {
    writer.u32(4)
    writer.u32(value)
  }

const real =
  (value: number): Field =>
  (writer) => {
    writer.u32(6)
    writer.f32(value)
  }

const flag =
  (value: boolean): Field =>
  (writer) => {
    writer.u32(7)
    writer.bytes(Buffer.from([Number(value)]))
  }

const word =
  (value: string): Field =>
  (writer) => {
    writer.u32(8)
    writer.text(value)
  }

const list =
  <A>(type: 5 | 6 | 8, items: ReadonlyArray<A>, write: (writer: Writer, item: A) => void): Field =>
  (writer) => {
    writer.u32(9)
    writer.u32(type)
    writer.u64(items.length)
    for (const item of items) write(writer, item)
  }

const fields: ReadonlyArray<readonly [key: string, value: Field]> = [
  ["general.architecture", word("llama")],
  ["general.name", word("tiny random")],
  ["general.alignment", count(alignment)],
  ["llama.context_length", count(contextLength)],
  ["llama.embedding_length", count(size)],
  ["llama.block_count", count(layers)],
  ["llama.feed_forward_length", count(inner)],
  ["llama.attention.head_count", count(heads)],
  ["llama.attention.head_count_kv", count(heads)],
  ["llama.attention.layer_norm_rms_epsilon", real(1e-5)],
  ["llama.rope.dimension_count", count(size / heads)],
  ["llama.vocab_size", count(tokens.length)],
  ["tokenizer.ggml.model", word("llama")],
  ["tokenizer.ggml.tokens", list(8, tokens, (writer, { text }) => writer.text(text))],
  // A tokenizer joins the pair of the highest score first: longer words before shorter ones.
  ["tokenizer.ggml.scores", list(6, tokens, (writer, { text, type }) => writer.f32(type === 1 ? text.length : 0))],
  ["tokenizer.ggml.token_type", list(5, tokens, (writer, { type }) => writer.u32(type))],
  ["tokenizer.ggml.unknown_token_id", count(0)],
  ["tokenizer.ggml.bos_token_id", count(1)],
  ["tokenizer.ggml.eos_token_id", count(2)],
  ["tokenizer.ggml.add_bos_token", flag(true)],
  ["tokenizer.ggml.add_space_prefix", flag(false)]
]

/** Writes the model of a seed to a file. */
export const writeTinyModel = (path: string, seed: number): void => {
  const parts = tensors(seed)
  const writer = new Writer()
  writer.bytes(Buffer.from("GGUF"))
  writer.u32(3)
  writer.u64(parts.length)
  writer.u64(fields.length)
  for (const [key, value] of fields) {
    writer.text(key)
    value(writer)
  }
  let offset = 0
  for (const { name, shape, values } of parts) {
    writer.text(name)
    writer.u32(shape.length)
    for (const length of shape) writer.u64(length)
    // Plain 32-bit numbers.
    writer.u32(0)
    writer.u64(offset)
    offset += Math.ceil(values.byteLength / alignment) * alignment
  }
  writer.pad()
  for (const { values } of parts) {
    writer.bytes(Buffer.from(values.buffer, values.byteOffset, values.byteLength))
    writer.pad()
  }
  writeFileSync(path, writer.whole())
}
