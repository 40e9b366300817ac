/** JSON as text. A long text is cut until it is expanded. */

import { useSignal } from "@preact/signals"
import { json } from "./format.ts"

const most = 6_000

export const Json = ({ value }: { value: unknown }) => {
  const isWhole = useSignal(false)
  const text = json(value)
  if (text.length <= most || isWhole.value) return <pre>{text}</pre>
  return (
    <>
      <pre>{text.slice(0, most)}</pre>
      <button onClick={() => (isWhole.value = true)}>show all {text.length} characters</button>
    </>
  )
}
