/** What a person does with an answer: asks again, and moves between the variants. */

import { choose, writeChoices } from "./chatBranches.ts"
import { choicesIn, type Exchange } from "./chatStore.ts"
import { Icon } from "./icons.tsx"
import { runAddress, setQuery } from "./pageStore.ts"

/** `onAgain` is absent while nothing can be asked. */
export const ChatFoot = ({ exchange, onAgain }: { exchange: Exchange; onAgain: (() => void) | undefined }) => (
  <p class="foot">
    {onAgain !== undefined && (
      <button class="plain" onClick={onAgain}>
        <Icon name="rotate-ccw" /> Try again
      </button>
    )}
    <Variants exchange={exchange} />
    <a class="quiet" href={runAddress(exchange.runId)}>
      open the run
    </a>
  </p>
)

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
