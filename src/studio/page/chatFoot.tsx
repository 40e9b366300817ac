/** What a person does with an answer: copies it, continues a failed one, asks again, and moves between the variants. */

import { statusOf } from "../../store-kit/StoreRules.ts"
import { choose, writeChoices } from "./chatBranches.ts"
import { choicesIn, type Exchange, isUnderWay, retry, turnsOf } from "./chatStore.ts"
import { Thumbs } from "./chatScores.tsx"
import { spokenIn } from "./chatStream.ts"
import { Icon } from "./icons.tsx"
import { attempt, canChange, guest, info, runAddress, setQuery } from "./pageStore.ts"
import { saidIn } from "../internal/saidIn.ts"
import { say } from "./toasts.tsx"

/** `onAgain` is absent while nothing can be asked. */
export const ChatFoot = ({ exchange, onAgain }: { exchange: Exchange; onAgain: (() => void) | undefined }) => (
  <p class="foot">
    <Copy exchange={exchange} />
    {guest.value === undefined && onAgain !== undefined && isRetried(exchange) && (
      <button class="plain" onClick={() => void attempt(() => retry(exchange))}>
        <Icon name="play" /> Continue
      </button>
    )}
    {onAgain !== undefined && (
      <button class="plain" onClick={onAgain}>
        <Icon name="rotate-ccw" /> Try again
      </button>
    )}
    <Variants exchange={exchange} />
    {info.value.evaluations && canChange.value && exchange.state.status.type === "completed" && (
      <Thumbs runId={exchange.runId} />
    )}
    {guest.value === undefined && (
      <a class="quiet" href={runAddress(exchange.runId)}>
        Open the run
      </a>
    )}
  </p>
)

const isRetried = ({ state }: Exchange) => ["failed", "no_answer"].includes(statusOf(state.status).type)

const Copy = ({ exchange }: { exchange: Exchange }) => {
  const { state } = exchange
  const message = turnsOf(state).at(-1)?.message
  const text = message === undefined ? (spokenIn(state).at(-1)?.text ?? "") : saidIn(message)
  if (text.trim() === "" || isUnderWay(exchange)) return null
  return (
    <button class="plain" onClick={() => void navigator.clipboard?.writeText(text.trim()).then(() => say("Copied"))}>
      <Icon name="copy" /> Copy
    </button>
  )
}

const Variants = ({ exchange: { place, variant, variants } }: { exchange: Exchange }) => {
  if (variants < 2) return null
  const go = (to: number) => () => setQuery("line", writeChoices(choose(choicesIn(), place, to)))
  return (
    <span class="variants" role="group" aria-label="Variants">
      <button class="plain" aria-label="Previous variant" disabled={variant === 1} onClick={go(variant - 1)}>
        <Icon name="chevron-left" />
      </button>
      {variant} / {variants}
      <button class="plain" aria-label="Next variant" disabled={variant === variants} onClick={go(variant + 1)}>
        <Icon name="chevron-right" />
      </button>
    </span>
  )
}
