/** `k8s.io/apimachinery/pkg/apis/meta/v1`, in the notation of parse.ts. */
export const metaTypes = `
ObjectMeta: What every stored object has: its names, its labels and its life cycle.
  name string #1 | The name, unique in its namespace. It cannot be changed.
  generateName string #2 | A prefix from which the server makes a unique name when \`name\` is empty.
  namespace string #3 | The namespace the object lives in. It cannot be changed.
  selfLink string #4 | Deprecated, no longer filled in.
  uid string #5 | Unique in time and space, given by the server.
  resourceVersion string #6 | An opaque version of the object, for concurrency control and watches.
  generation int64 #7 | Counts the changes of the desired state.
  creationTimestamp Time #8 | When the object was created.
  deletionTimestamp Time #9 | When the object will be gone; set once its deletion was asked for.
  deletionGracePeriodSeconds int64 #10 | Seconds the object may take to end by itself.
  labels {}string #11 | Names and values to organise and select objects.
  annotations {}string #12 | Names and values that carry data of tools and libraries; not for selecting.
  ownerReferences []OwnerReference #13 merge=uid map=uid | The objects this one depends on; it is removed when they all are.
  finalizers []string #14 merge set | Must be empty before the object is removed.
  managedFields []ManagedFieldsEntry #17 | Which writer manages which fields.
OwnerReference: Identifies an owning object.
  apiVersion string! #5 | API version of the owner.
  kind string! #1 | Kind of the owner.
  name string! #3 | Name of the owner.
  uid string! #4 | UID of the owner.
  controller boolean #6 | True when the owner is the managing controller.
  blockOwnerDeletion boolean #7 | True when a foreground deletion of the owner waits for this object.
ManagedFieldsEntry: The fields that one writer manages.
  manager string #1 | Name of the writer.
  operation string #2 | Apply or Update.
  apiVersion string #3 | Version of the object these fields are of.
  time Time #4 | When the entry last changed.
  fieldsType string #6 | The format of fieldsV1; only FieldsV1.
  fieldsV1 object #7 | The set of fields.
  subresource string #8 | The subresource that was written through, or empty.
ListMeta: What every list has.
  selfLink string #1 | Deprecated, no longer filled in.
  resourceVersion string #2 | The version of the list, to start a watch at.
  continue string #3 | Given back to read the next page.
  remainingItemCount int64 #4 | How many objects follow this page.
LabelSelector: A query over labels; all of its requirements must hold.
  matchLabels {}string #1 | Each name must have this value.
  matchExpressions []LabelSelectorRequirement #2 | Further requirements.
LabelSelectorRequirement: A requirement with a key, an operator and values.
  key string! #1 | The label.
  operator string! #2 | In, NotIn, Exists or DoesNotExist.
  values []string #3 | The values for In and NotIn.
Condition: One aspect of the current state.
  type string! #1 | Name of the condition.
  status string! #2 | True, False or Unknown.
  observedGeneration int64 #3 | The generation this was worked out from.
  lastTransitionTime Time! #4 | When the status last changed.
  reason string! #5 | A word that programs can match.
  message string! #6 | A sentence for people.
Preconditions: What must hold before a deletion is carried out.
  uid string #1 | The UID of the object.
  resourceVersion string #2 | The version of the object.
DeleteOptions: How to delete.
  apiVersion string
  kind string
  gracePeriodSeconds int64 #1 | Seconds before the object is removed; zero means now.
  preconditions Preconditions #2 | What must hold.
  orphanDependents boolean #3 | Deprecated, use propagationPolicy.
  propagationPolicy string #4 | Orphan, Background or Foreground.
  dryRun []string #5 | All: nothing is stored.
  ignoreStoreReadErrorWithClusterBreakingPotential boolean #6
`
