"""All runs of small groups on a link in which a member is given up, restarts or joins.

    python -m campaigns.epochs                            # every scenario, with ks, rst and bss
    python -m campaigns.epochs --protocol ks --scenario forget --messages 1,1,1

The epochs and links of `causewire.transport` run unchanged, with the endpoints of the
protocols. The search replaces what is below them: the stream of each session is a queue that
keeps its order, and is read at any moment. Datagrams that are lost and sent again are a delay.
What was under way is lost when a session ends. A process accepts nothing from another one whose
obituary it knows (F1). Whatever is sent carries the obituaries that its sender knows, which are
processed first (F2), and they travel by themselves at any moment.

Every order of events is tried, up to those that lead to the same state. In each state:

- no message is delivered twice, or after one that depends on it;
- two members of an epoch enter it at the same cut: a message from one to the other is sent
  before the cut if and only if it is delivered before the cut.

Where nothing more can happen: the living have entered the same epoch, whose members they are,
nothing waits, and every message between them is delivered.
"""
