/** The list of keys. */

import { keys } from "./keys.ts"
import { showKeys } from "./pageStore.ts"

export const KeyList = () => (
  <div class="sheet" role="dialog" aria-label="Keys" aria-modal="true">
    <h2>Keys</h2>
    <dl>
      {keys.map(([key, what]) => (
        <div key={key}>
          <dt>
            <kbd>{key}</kbd>
          </dt>
          <dd>{what}</dd>
        </div>
      ))}
    </dl>
    <button onClick={() => (showKeys.value = false)}>close</button>
  </div>
)
