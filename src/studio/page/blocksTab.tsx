/** The raw reply of a turn beside the blocks that were read from it. */

import { useSignal } from "@preact/signals"
import { BlockFold } from "../../internal/words/blockFold.ts"
import { state } from "./pageStore.ts"
import { Json } from "./jsonText.tsx"

interface Piece {
  readonly text: string
  /** The index of its block; text outside blocks has none. */
  readonly block?: number
}

interface Read {
  readonly pieces: ReadonlyArray<Piece>
  readonly blocks: ReadonlyArray<{
    readonly type: string
    readonly name: string | null
    readonly content: string
    readonly flag: string
  }>
}

/** Reads a reply as the kernel does. A part ends where the text that was read ends, so its place is known. */
export const readReply = (reply: string): Read => {
  const fold = new BlockFold({ replyLength: Infinity })
  const blocks: Array<Read["blocks"][number]> = []
  const pieces: Array<Piece> = []
  let from = 0
  const cut = (to: number, block?: number) => {
    if (to > from) pieces.push({ text: reply.slice(from, to), ...(block === undefined ? {} : { block }) })
    from = Math.max(from, to)
  }
  const take = (parts: ReturnType<BlockFold["push"]>, at: number) => {
    for (const part of parts) {
      if (part.type === "block_start") cut(reply.lastIndexOf("<", at - 1))
      if (part.type === "block_complete" || part.type === "block_unclosed") {
        const isClosed = part.type === "block_complete"
        const block = isClosed ? part.block : { type: part.blockType, name: part.name, content: part.content }
        cut(at, blocks.length)
        blocks.push({ ...block, flag: isClosed ? "" : "unclosed" })
      }
    }
  }
  for (let at = 0; at < reply.length; at++) take(fold.push(reply.charAt(at)), at + 1)
  take(fold.flush(), reply.length)
  cut(reply.length)
  return { pieces, blocks }
}

export const BlocksTab = () => {
  const hovered = useSignal(-1)
  const turn = state.value?.currentTurn?.message === undefined ? state.value?.turns.at(-1) : state.value.currentTurn
  if (turn?.message === undefined) return <p class="quiet">no reply yet</p>
  const raw = turn.message.content.map((part) => (part.type === "text" ? part.text : "")).join("")
  const { blocks, pieces } = readReply(raw)
  const calls = turn.message.content.filter((part) => part.type === "tool_use")
  const mark = (block: number | undefined) => ({
    class: block === undefined ? "" : block === hovered.value ? "span marked" : "span",
    onMouseEnter: () => (hovered.value = block ?? -1),
    onMouseLeave: () => (hovered.value = -1)
  })
  return (
    <div class="pair">
      <section aria-label="Raw reply">
        <h4>raw reply of turn {turn.turn}</h4>
        <pre class="raw">
          {pieces.map(({ block, text }, index) => (
            <span key={index} {...mark(block)}>
              {text}
            </span>
          ))}
        </pre>
      </section>
      <section aria-label="Blocks">
        <h4>
          {blocks.length} blocks, {turn.outcome?.type ?? "not decided"}
        </h4>
        {blocks.map(({ content, flag, name, type }, index) => (
          <div key={index} {...mark(index)}>
            <b>{type}</b> {name} {flag !== "" && <span class="badge error">{flag}</span>}
            <pre>{content}</pre>
          </div>
        ))}
        {calls.map((call, index) => (
          <Json key={index} value={call} />
        ))}
        {turn.outcome?.type === "corrective" && <p class="error">{turn.outcome.corrective}</p>}
      </section>
    </div>
  )
}
