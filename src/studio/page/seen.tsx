/**
 * Draws every text so that a person sees what it holds. Text of a model, a tool or a file may hide characters, change
 * the direction of what follows, or imitate letters; all elements of the page mark such characters.
 */

import { Fragment, options, type ComponentChild, type VNode } from "preact"
import { seen, seenParts } from "../../kit/seenText.ts"

/** Returns a text with its marks as elements. */
const drawn = (text: string): ComponentChild => {
  const parts = seenParts(text)
  if (parts.length === 1 && parts[0] === text) return text
  return parts.map((part, index) =>
    typeof part === "string" ? (
      part
    ) : (
      <mark key={index} class={`seen ${part.kind}`} title={part.note}>
        {part.text}
      </mark>
    )
  )
}

/** Elements that take text only. */
const textOnly: ReadonlySet<unknown> = new Set(["option", "title"])

/** Elements whose text is edited, or is not shown. */
const untouched: ReadonlySet<unknown> = new Set(["textarea", "style", "script", "mark"])

const childOf = (child: ComponentChild, isTextOnly: boolean): ComponentChild =>
  typeof child === "string" ? (isTextOnly ? seen(child) : drawn(child)) : child

const mark = (vnode: VNode<Record<string, unknown>>): void => {
  const { props, type } = vnode
  if ((typeof type !== "string" && type !== Fragment) || untouched.has(type)) return
  const { children } = props
  const isTextOnly = textOnly.has(type)
  if (typeof children === "string") props.children = childOf(children, isTextOnly)
  else if (Array.isArray(children)) props.children = children.map((child) => childOf(child, isTextOnly))
  for (const name of ["aria-label", "title", "alt"]) {
    const said = props[name]
    if (typeof said === "string") props[name] = seen(said)
  }
}

/** Marks the text of every element that the page creates from now on. */
export const markAllText = (): void => {
  const { vnode: before } = options
  options.vnode = (vnode) => {
    mark(vnode)
    before?.(vnode)
  }
}

/** JSON, whose texts cannot change the order of what stands around them. */
export const SeenJson = ({ text }: { text: string }) => (
  <>
    {text.split(/("(?:[^"\\]|\\.)*")/).map((part, index) => (index % 2 === 1 ? <bdi key={index}>{part}</bdi> : part))}
  </>
)

/** Returns how many marks a text has. */
export const marksIn = (text: string): number => seenParts(text).filter((part) => typeof part !== "string").length
