"""Small lists of function words, a few dozen per language: words that say nothing about a topic.

Short on purpose. A long list throws away words that mean something to somebody ("computer" stands in one).
"""

from __future__ import annotations

_LISTS = {
    "danish": "af at da de den der deres det du eller en end er et for fra han har hun i ikke jeg kan med men mig "
    "nu og om op på sig skal som så til var vi vil være",
    "dutch": "aan al als bij dan dat de der deze die dit door een en er het hij hoe ik in is je kan maar me met "
    "mijn naar niet nog nu of om onder ons ook op over te ten tot uit van veel voor want was wat we wel "
    "wie wij zij zijn zo zou",
    "english": "a about after all also am an and any are as at be because been before being both but by can could "
    "did do does for from had has have he her here hers him his how i if in into is it its just me more "
    "most my no nor not of on once only or other our out over own same she should so some such than that "
    "the their them then there these they this those through to too under until up very was we were what "
    "when where which while who whom why will with would you your yours",
    "finnish": "ei että he hän ja jos joka jotka kanssa kuin kun me mikä minä mukaan mutta myös ne niin nämä ole oli "
    "on ovat se sekä sen siis sinä tai te tämä vaan vai voi",
    "french": "à au aux avec ce ces cette comme d dans de des du elle en est et été être eux il ils j je l la le "
    "les leur lui m ma mais me même mes moi mon n ne nos notre nous on ou où par pas pour qu que qui s sa "
    "sans se ses si son sont sur t ta te tes toi ton tu un une vos votre vous y",
    "german": "aber als am an auch auf aus bei bin bis da dann das dass dein dem den der des die dir doch du durch "
    "ein eine einem einen einer eines er es für hat hatte ich ihm ihn ihr im in ist ja kann kein mein "
    "mich mir mit nach nicht noch nun nur ob oder ohne schon sein sich sie sind so über um und uns unter "
    "vom von vor war was wenn wer wie wir wird zu zum zur",
    "italian": "a ad al alla alle anche c che chi ci come con cui d da dal dalla de del della delle dei di e è ed "
    "era essere fra gli ha hanno ho i il in io l la le lei li lo loro lui ma mi mia mio ne nei nel nella "
    "noi non nostro o per perché più quando quella quello questa questo se si sia sono su sua suo sul "
    "sulla ti tra tu un una uno vi voi",
    "norwegian": "av at da de den det du eller en er et for fra han har hun i ikke jeg kan med men meg nå og om opp på "
    "seg skal som så til var vi vil være",
    "portuguese": "a ao aos as à às com como da das de dele do dos e é ela ele em entre era essa esse esta este eu foi "
    "há isso já lhe mais mas me mesmo meu minha muito na nas não nem no nos nós o os ou para pela pelo "
    "por qual quando que quem se sem ser seu sua são só também te tem um uma você",
    "spanish": "a al algo como con cual cuando de del desde donde e el ella ellos en entre era es esa ese esta este "
    "esto ha hay la las le les lo los más me mi mis mucho muy nada ni no nos o os otra otro para pero "
    "poco por porque que quien se sea ser si sin sobre son su sus también te tiene todo tu tus un una uno "
    "y ya yo",
    "swedish": "alla att av de den denna det dig du där efter ej eller en ett från för ha han har hon i icke inte "
    "jag kan man med men mig min mot ni nu när och om oss på sedan sig sin ska som så till under upp ut "
    "var vi vid vill är även över",
}

STOP_WORDS = {language: frozenset(words.split()) for language, words in _LISTS.items()}
