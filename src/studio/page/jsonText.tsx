/** JSON as text. A long text is cut until it is expanded. */

import { useSignal } from "@preact/signals"
import { json } from "./format.ts"
import { SeenJson } from "./seen.tsx"

const most = 6_000

export const Json = ({ value }: { value: unknown }) => {
  const isWhole = useSignal(false)
  const text = json(value)
  if (text.length <= most || isWhole.value) return <Pre text={text} />
  return (
    <>
      <Pre text={text.slice(0, most)} />
      <button onClick={() => (isWhole.value = true)}>show all {text.length} characters</button>
    </>
  )
}

const Pre = ({ text }: { text: string }) => (
  <pre>
    <SeenJson text={text} />
  </pre>
)
